-- KEYS: '{name}', '{name}:open'. All other keys begin with the first, so that holders of another N are seen too; they
-- share its hash tag, so a cluster keeps them all on one node. Nothing is ever stored under the first: while a cluster moves
-- the keys to another node it answers "try again" to a script that names a key which is not there, and what it must never
-- do is to run it where only some of them are.
-- ARGV: slots, start, ttl in ms, token, server and owner, parted by blanks: a client packs and reads one string far faster
-- than a list, and so the answer is fields parted by NUL.
-- '{name}:open' maps a slot to the owner that has not released it (an entry without its key has expired), and 'fence' to
-- the last fence.
-- Whoever asks again with the same token, because the answer was lost, is given the same slot.
local wanted, start, ttl, token, server, owner = string.match(ARGV[1], '^(%d+) (%d+) (%d+) (%x+) (%x*) (.*)$')
wanted, start, ttl = tonumber(wanted), tonumber(start), tonumber(ttl)
local slot_key, open_key = KEYS[1] .. ':slot:', KEYS[2]

local open, fence, width = {}, 0, wanted
local listed = redis.call('HGETALL', open_key)
for i = 1, #listed, 2 do
    if listed[i] == 'fence' then
        fence = tonumber(listed[i + 1])
    else
        open[tonumber(listed[i])] = listed[i + 1]
        width = math.max(width, tonumber(listed[i]) + 1)
    end
end

local taken, holders, soonest, mine = {}, 0, -1, nil
local narrowest, narrowest_by, widest, widest_by = wanted, '', wanted, ''
for slot = 0, width - 1 do
    local found = open[slot] and redis.call('HMGET', slot_key .. slot, 'slots', 'owner', 'token', 'fence', 'acquired')
    if found and found[3] == token then
        mine = {slot, found[4], string.match(found[5], '^(%d+)%.(%d+)$')}
    elseif found and found[1] then
        local theirs, left = tonumber(found[1]), redis.call('PTTL', slot_key .. slot)
        taken[slot], holders = true, holders + 1
        if soonest < 0 or left < soonest then soonest = left end
        if holders == 1 or theirs < narrowest then narrowest, narrowest_by = theirs, found[2] end
        if holders == 1 or theirs > widest then widest, widest_by = theirs, found[2] end
    end
end

local bound = math.min(wanted, narrowest)
local peers = table.concat({holders, narrowest, narrowest_by, widest, widest_by, soonest}, '\0')
if mine then return table.concat({peers, mine[1], mine[2], mine[3], mine[4], ''}, '\0') end
if holders >= bound then return peers end
local slot
for step = 0, wanted - 1 do
    local candidate = (start + step) % wanted
    -- The key itself is asked, too: a server that is short of memory may have dropped the list and kept the slot.
    if candidate < bound and not taken[candidate] and redis.call('EXISTS', slot_key .. candidate) == 0 then
        slot = candidate
        break
    end
end
if not slot then return peers end

-- Microseconds since 1970 stay ahead of a counter that a restart or FLUSHALL lost; the counter stays ahead of a clock
-- that was set back.
local time = redis.call('TIME')
fence = string.format('%.0f', math.max(fence + 1, tonumber(time[1]) * 1000000 + tonumber(time[2])))
local month = 2592000 -- more than any ttl; whoever extends a lease begins it anew
redis.call('HSET', open_key, slot, owner, 'fence', fence)
redis.call('EXPIRE', open_key, month)
redis.call('HSET', slot_key .. slot, 'token', token, 'owner', owner, 'server', server, 'slots', wanted,
    'fence', fence, 'ttl', ttl, 'acquired', time[1] .. '.' .. string.format('%06d', time[2]))
redis.call('PEXPIRE', slot_key .. slot, ttl)
return table.concat({peers, slot, fence, time[1], time[2], open[slot] or ''}, '\0')
