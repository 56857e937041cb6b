-- Exact for integers up to 2^53, where floor(a / b) is not: fmod never rounds.
local function divide(a, b)
  local left = math.fmod(a, b)
  return (a - left) / b, left
end

local function divide_up(a, b)
  local quotient, left = divide(a, b)
  return left > 0 and quotient + 1 or quotient
end
