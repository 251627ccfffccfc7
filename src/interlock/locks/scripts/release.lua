-- KEYS: '{name}', '{name}:open', as for acquire. ARGV: token, at least this many ms held.
local open_key = KEYS[2]

local function milliseconds_left(key)
    local at_least = tonumber(ARGV[2])
    if at_least == 0 then return 0 end
    local time = redis.call('TIME')
    local held = tonumber(time[1]) + tonumber(time[2]) / 1000000 - tonumber(redis.call('HGET', key, 'acquired'))
    return math.ceil(at_least - held * 1000)
end

for _, slot in ipairs(redis.call('HKEYS', open_key)) do
    local key = KEYS[1] .. ':slot:' .. slot
    if slot ~= 'fence' and redis.call('HGET', key, 'token') == ARGV[1] then
        local left = milliseconds_left(key)
        if left > 0 then
            redis.call('PEXPIRE', key, left) -- first what needs no memory, as in extend
            redis.call('HSET', open_key, slot, '')
            redis.call('HSET', key, 'token', '')
        else
            redis.call('HDEL', open_key, slot)
            redis.call('DEL', key)
        end
        -- A name that nobody holds is forgotten soon, or every name ever used would take memory for a month. The clock
        -- alone keeps fences growing from then on: it would have to be set back by more than this.
        local hour, listed = 3600, redis.call('HLEN', open_key)
        if listed <= (left > 0 and 2 or 1) then
            redis.call('EXPIRE', open_key, hour + math.max(math.ceil(left / 1000), 0))
        end
        return 1
    end
end
return 0
