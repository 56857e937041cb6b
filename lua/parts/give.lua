-- Gives tokens back to limits: a refund of what was taken, or a grant. Never above capacity, and never into a key that
-- isn't there: that limit is full.
--
-- KEYS    check after check, as described at "A check" below
-- ARGV    from, until: the time in ms that every quota's boundaries cover; outside of it nothing is done
--         then for each check: the tokens to give, then the check, then for each of its limits the begin of the window
--           that was charged, where only that one may be refunded, else 0
-- Output  now in ms, and nothing else outside of from..until; then for each limit of each check the tokens given

--@include arithmetic.lua
--@include state.lua
--@include greedy.lua
--@include interval.lua
--@include limit.lua
--@include check.lua
local from, till = next_number(), next_number()
if now < from or now >= till then
  return { now }
end
local reply = { now }

-- Returns how much the limit takes of a gift: a quota that was lowered may have more used than it has.
local function give(limit, tokens)
  local missing = limit.mode == "q" and limit.used or limit.capacity - limit.tokens
  local given = math.min(tokens, missing)
  limit.tokens = limit.capacity - missing + given
  limit.used = missing - given
  return given
end

local given = {}
while arg_at < #ARGV do
  local tokens = next_number()
  local check = next_check()
  if check.fault then
    return redis.error_reply(check.fault)
  end
  for _, limit in ipairs(check.limits) do
    local charged = next_number()
    local count = 0
    if charged == 0 or charged == limit.last then
      count = give(limit, tokens)
    end
    if count > 0 then
      given[#given + 1] = limit
    end
    reply[#reply + 1] = count
  end
end

for _, limit in ipairs(given) do
  if limit.tokens >= limit.capacity then
    redis.call("DEL", limit.key)
  else
    save(limit)
  end
end
return reply
