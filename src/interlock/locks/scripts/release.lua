-- KEYS: '{name}:slot:', '{name}:open'. ARGV: token, at least this many ms held.
for _, slot in ipairs(redis.call('HKEYS', KEYS[2])) do
    local key = KEYS[1] .. slot
    if redis.call('HGET', key, 'token') == ARGV[1] then
        local time = redis.call('TIME')
        local held = (tonumber(time[1]) + tonumber(time[2]) / 1000000 - tonumber(redis.call('HGET', key, 'acquired'))) * 1000
        local left = math.ceil(tonumber(ARGV[2]) - held)
        if left > 0 then
            redis.call('HSET', KEYS[2], slot, '')
            redis.call('HSET', key, 'token', '')
            redis.call('PEXPIRE', key, left)
        else
            redis.call('HDEL', KEYS[2], slot)
            redis.call('DEL', key)
        end
        return 1
    end
end
return 0
