-- KEYS: the slot, '{name}:open'. ARGV: token, ttl in ms, the slot's number. An absent key is a lost lease: extending never
-- takes a slot. Nor does it shorten a lease: of two who extend at once, the one with the longer ttl may be answered first.
local found = redis.call('HMGET', KEYS[1], 'token', 'owner')
if found[1] ~= ARGV[1] then return 0 end
-- First what needs no memory: a server that has none left refuses a script whose first write needs some, and lets one that
-- has begun to write go on.
redis.call('PEXPIRE', KEYS[1], math.max(tonumber(ARGV[2]), redis.call('PTTL', KEYS[1])))
redis.call('HSET', KEYS[1], 'ttl', ARGV[2])
-- The list of slots has to outlive whoever holds one, however long that is.
local month = 2592000
redis.call('HSET', KEYS[2], ARGV[3], found[2])
redis.call('EXPIRE', KEYS[2], month)
return 1
