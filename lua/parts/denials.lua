-- Counts `denials` more, and bans when they are enough.
local function count_denials(ban, denials)
  local value, ttl
  if ban.denials + denials >= ban.after then
    value, ttl = string.format("-%013.0f", now), ban.length
  else
    value = string.format("%.0f%013.0f", ban.denials + denials, ban.since)
    ttl = math.max(1, ban.within - math.max(0, now - ban.since))
  end
  redis.call("SET", ban.key, value, "PX", string.format("%.0f", ttl))
end
