-- Gives a subject numbers of its own, or with an empty text takes them away.
--
-- KEYS[1]  the override
-- ARGV[1]  its text: "keep" where use renews it, then "\n" and for each limit a line with its name, mode and numbers,
--          "burst g 10 1 1000\n" (capacity, refill, per ms; "i" for intervals) or "month q 500\n"
-- ARGV[2]  ms it lasts
-- Output   1

if ARGV[1] == "" then
  redis.call("DEL", KEYS[1])
else
  redis.call("SET", KEYS[1], ARGV[1], "PX", ARGV[2])
end
return { 1 }
