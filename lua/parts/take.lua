-- Takes tokens from several limits in one step. The limits of one unit are taken from all together or not at all, and
-- units are judged one after another, each on its own. A unit that takes nothing writes nothing, but for a count of
-- denials where a policy bans. A key that somebody else wrote is an error before anything is written; in a unit of
-- shadow checks it is a limit without tokens.
--
-- KEYS    check after check, as described at "A check" below
-- ARGV    from, until: the time in ms that every quota's boundaries cover; outside of it nothing is done
--         takes: how many equal takes to try, one after another, for each unit
--         then for each unit: 1 when it is enforced, 0 for shadow checks, whose denials don't count towards bans; the
--           number of its checks, then for each check its cost, then the check
-- Output  now in ms, and nothing else outside of from..until
--         then for each unit: how many of the takes were granted, then for each check
--           whether an override was found 0/1, ms that a ban still lasts, denials counted before
--           then each of its limits as it was before the takes: tokens, last ms, part (a quota: its window's begin and
--           end in place of the last two); after an override also capacity, refill, per

--@include arithmetic.lua
--@include state.lua
--@include greedy.lua
--@include interval.lua
--@include limit.lua
--@include check.lua
--@include denials.lua
local from, till, takes = next_number(), next_number(), next_number()
if now < from or now >= till then
  return { now }
end
local reply, size = { now }, 1

local function say(a, b, c)
  reply[size + 1], reply[size + 2], reply[size + 3] = a, b, c
  size = size + 3
end

-- Whether a take of the check's cost fails on its own limits as they are now.
local function denies(check)
  for _, limit in ipairs(check.limits) do
    if limit.tokens < check.cost then
      return true
    end
  end
end

-- How many of the takes all limits of a unit grant. Checks of one unit that share a limit take from it together.
local function grants(unit)
  local wanted = {}
  for _, check in ipairs(unit) do
    if check.fault or check.ban and check.ban.left > 0 then
      return 0
    end
    for _, limit in ipairs(check.limits) do
      wanted[limit] = (wanted[limit] or 0) + check.cost
    end
  end
  local granted = takes
  for limit, cost in pairs(wanted) do
    if cost > 0 then
      granted = math.min(granted, (divide(limit.tokens, cost)))
    end
  end
  return granted
end

-- Of equal denials one after another, those count that come before the first ban.
local function ban_for(unit, denied)
  local bans = {}
  for _, check in ipairs(unit) do
    if check.ban and check.ban.left > 0 then
      return
    elseif check.ban and check.cost > 0 and denies(check) then
      bans[#bans + 1] = check.ban
      denied = math.min(denied, math.max(1, check.ban.after - check.ban.denials))
    end
  end
  for _, ban in ipairs(bans) do
    count_denials(ban, denied)
  end
end

local units = {}
while arg_at < #ARGV do
  local unit = { enforced = next_arg() == "1" }
  for i = 1, next_number() do
    local cost = next_number()
    unit[i] = next_check()
    unit[i].cost = cost
    if unit.enforced and unit[i].fault then
      return redis.error_reply(unit[i].fault)
    end
  end
  units[#units + 1] = unit
end

local taken = {}
for _, unit in ipairs(units) do
  local granted = grants(unit)
  size = size + 1
  reply[size] = granted
  for _, check in ipairs(unit) do
    local ban = check.ban
    say(check.override and 1 or 0, ban and ban.left or 0, ban and ban.denials or 0)
    for _, limit in ipairs(check.limits) do
      say(limit.tokens, limit.last, limit.part)
      if check.override then
        say(limit.capacity, limit.refill or 0, limit.per or 0)
      end
      if granted > 0 and check.cost > 0 then
        limit.tokens = limit.tokens - granted * check.cost
        taken[#taken + 1] = limit
      end
    end
  end
  if unit.enforced and granted < takes then
    ban_for(unit, takes - granted)
  end
end

for _, limit in ipairs(taken) do
  save(limit)
end
return reply
