-- The scripts run inside Redis, which gives them these and nothing else.
std = "lua51"
globals = {}
read_globals = { "redis", "KEYS", "ARGV" }
max_line_length = 120
