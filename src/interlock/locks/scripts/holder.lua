-- KEYS: the slot. Who holds it, for how long still, and what time it is there.
local found = redis.call('HMGET', KEYS[1], 'owner', 'server', 'slots', 'fence', 'ttl', 'acquired')
if not found[1] then return {} end
found[7], found[8] = redis.call('PTTL', KEYS[1]), redis.call('TIME')
return found
