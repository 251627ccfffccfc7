select train from /*schema*/manifest where external_id = :external_id
