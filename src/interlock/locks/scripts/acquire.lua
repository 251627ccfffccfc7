-- KEYS: '{name}:slot:', '{name}:fence', '{name}:open'. The slots' keys are made from the first, so that holders of
-- another N are seen too; they share its hash tag, so a cluster keeps them all on one node.
-- ARGV: slots, start, ttl in ms, token, owner, server.
-- '{name}:open' maps a slot to the owner that has not released it: an entry without its key has expired.
local wanted, start, ttl = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local width = wanted
local open = redis.call('HKEYS', KEYS[3])
for _, slot in ipairs(open) do width = math.max(width, tonumber(slot) + 1) end

local taken, holders, soonest = {}, 0, -1
local narrowest, narrowest_by, widest, widest_by = wanted, '', wanted, ''
for slot = 0, width - 1 do
    local found = redis.call('HMGET', KEYS[1] .. slot, 'slots', 'owner')
    if found[1] then
        local theirs, left = tonumber(found[1]), redis.call('PTTL', KEYS[1] .. slot)
        taken[slot], holders = true, holders + 1
        if soonest < 0 or left < soonest then soonest = left end
        if holders == 1 or theirs < narrowest then narrowest, narrowest_by = theirs, found[2] end
        if holders == 1 or theirs > widest then widest, widest_by = theirs, found[2] end
    end
end

local bound = math.min(wanted, narrowest)
local peers = {holders, narrowest, narrowest_by, widest, widest_by, soonest}
if holders >= bound then return {0, peers} end
local slot
for step = 0, wanted - 1 do
    local candidate = (start + step) % wanted
    if candidate < bound and not taken[candidate] then slot = candidate break end
end
if not slot then return {0, peers} end

-- Microseconds since 1970 stay ahead of a counter that a restart or FLUSHALL lost; the counter stays ahead of a clock
-- that was set back.
local time = redis.call('TIME')
local fence = math.max(tonumber(redis.call('GET', KEYS[2]) or '0') + 1, tonumber(time[1]) * 1000000 + tonumber(time[2]))
local month = 2592000
redis.call('SET', KEYS[2], string.format('%.0f', fence), 'EX', month)
local expired = redis.call('HGET', KEYS[3], slot)
redis.call('HSET', KEYS[3], slot, ARGV[5])
redis.call('EXPIRE', KEYS[3], math.ceil(ttl / 1000) + month)
local key = KEYS[1] .. slot
redis.call('HSET', key, 'token', ARGV[4], 'owner', ARGV[5], 'server', ARGV[6], 'slots', wanted,
    'fence', string.format('%.0f', fence), 'ttl', ttl, 'acquired', time[1] .. '.' .. string.format('%06d', time[2]))
redis.call('PEXPIRE', key, ttl)
return {1, peers, slot, string.format('%.0f', fence), time[1], time[2], expired or ''}
