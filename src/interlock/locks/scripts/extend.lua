-- KEYS: the slot. ARGV: token, ttl in ms. An absent key is a lost lease: extending never takes a slot.
if redis.call('HGET', KEYS[1], 'token') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'ttl', ARGV[2])
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
