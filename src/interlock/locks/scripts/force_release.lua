-- KEYS: the slot, '{name}:open'. ARGV: the slot's number.
local found = redis.call('HMGET', KEYS[1], 'owner', 'server', 'slots', 'fence', 'ttl', 'acquired')
if not found[1] then return {} end
local left = redis.call('PTTL', KEYS[1])
redis.call('DEL', KEYS[1])
redis.call('HDEL', KEYS[2], ARGV[1])
found[7], found[8] = left, redis.call('TIME')
return found
