-- What a key holds is one integer, which Redis keeps without a string: a count, then a time in 13 digits of ms. For a
-- bucket that is its tokens, and when it held just those; `:part` follows where a refill doesn't divide evenly into ms.
-- For a quota it is negative: what was used of it, and when that window began.

-- The count and the time in a string of digits; nothing where somebody else wrote it.
local function decode(digits)
  local count = #digits > 13 and tonumber(string.sub(digits, 1, -14)) or 0
  if #digits == 0 or count > 9007199254740992 then
    return nil
  end
  return count, tonumber(string.sub(digits, -13))
end

local function decode_bucket(stored)
  local digits, part = string.match(stored, "^(%d+):?(%d*)$")
  local tokens, last
  if digits and #part <= 16 then
    tokens, last = decode(digits)
  end
  return tokens, last, tonumber(part) or 0
end

local function encode_bucket(tokens, last, part)
  local stored = tokens > 0 and string.format("%.0f%013.0f", tokens, last) or string.format("%.0f", last)
  return part > 0 and string.format("%s:%.0f", stored, part) or stored
end
