-- KEYS: '{name}'. ARGV: token, at least this many ms held.
local open_key = KEYS[1] .. ':open'

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
            redis.call('HSET', open_key, slot, '')
            redis.call('HSET', key, 'token', '')
            redis.call('PEXPIRE', key, left)
        else
            redis.call('HDEL', open_key, slot)
            redis.call('DEL', key)
        end
        return 1
    end
end
return 0
