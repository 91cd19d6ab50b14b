-- derive_id: a name made from what it is about. SHA-256 in Lua, so that it works anywhere, also outside a task.
local H = ...
local format, byte, rep, char, unpack_bytes, pack_bytes = string.format, string.byte, string.rep, string.char,
  string.unpack, string.pack
local select, sub, pcall, setmetatable, floor = select, string.sub, pcall, setmetatable, math.floor

-- The first 32 bits of the fractional parts of roots of primes, computed instead of listed.
local K, START = {}, {}
do
  local function root(prime, degree) -- floor of the root times 2^32, in integers
    local low, high = 0, 1 << 38
    local function above(x) -- x^degree > prime * 2^(32 * degree), without leaving 64 bits
      local whole, part = x >> 32, x & 0xffffffff
      local limbs = { part, whole }
      local product = { part, whole }
      for _ = 2, degree do
        local sum, carry = {}, 0
        for i = 1, #product + 1 do
          local low_part = (i <= #product and product[i] * limbs[1] or 0)
          local shifted = (i > 1 and product[i - 1] * limbs[2] or 0)
          local total = (low_part & 0xffffffff) + (shifted & 0xffffffff) + (carry & 0xffffffff)
          sum[i] = total & 0xffffffff
          carry = (total >> 32) + (low_part >> 32) + (shifted >> 32) + (carry >> 32)
        end
        product = sum
      end
      local top = 0
      for i = #product, degree + 1, -1 do top = top << 32 | product[i] end
      return top >= prime
    end
    while high - low > 1 do
      local middle = (low + high) // 2
      if above(middle) then high = middle else low = middle end
    end
    return low & 0xffffffff
  end
  local found, candidate = 0, 2
  while found < 64 do
    local prime = true
    for d = 2, floor(candidate ^ 0.5) do
      if candidate % d == 0 then
        prime = false
        break
      end
    end
    if prime then
      found = found + 1
      K[found] = root(candidate, 3)
      if found <= 8 then START[found] = root(candidate, 2) end
    end
    candidate = candidate + 1
  end
end

local function rotate(x, n) return (x >> n | x << 32 - n) & 0xffffffff end

local function block(state, text, at)
  local w = { unpack_bytes('>I4I4I4I4I4I4I4I4I4I4I4I4I4I4I4I4', text, at) }
  for i = 17, 64 do
    local x, y = w[i - 15], w[i - 2]
    local s0 = rotate(x, 7) ~ rotate(x, 18) ~ x >> 3
    local s1 = rotate(y, 17) ~ rotate(y, 19) ~ y >> 10
    w[i] = w[i - 16] + s0 + w[i - 7] + s1 & 0xffffffff
  end
  local a, b, c, d, e, f, g, h = state[1], state[2], state[3], state[4], state[5], state[6], state[7], state[8]
  for i = 1, 64 do
    local s1 = rotate(e, 6) ~ rotate(e, 11) ~ rotate(e, 25)
    local t1 = h + s1 + (e & f ~ ~e & g) + K[i] + w[i]
    local s0 = rotate(a, 2) ~ rotate(a, 13) ~ rotate(a, 22)
    local t2 = s0 + (a & b ~ a & c ~ b & c)
    h, g, f, e, d, c, b, a = g, f, e, d + t1 & 0xffffffff, c, b, a, t1 + t2 & 0xffffffff
  end
  local sums = { a, b, c, d, e, f, g, h }
  for i = 1, 8 do state[i] = state[i] + sums[i] & 0xffffffff end
end

--- SHA-256 of a string as 64 lower-case hex digits.
function H.sha256(text)
  local state = { START[1], START[2], START[3], START[4], START[5], START[6], START[7], START[8] }
  local length = #text
  text = text .. '\x80' .. rep('\0', (55 - length) % 64) .. pack_bytes('>I8', length * 8)
  for at = 1, #text, 64 do block(state, text, at) end
  return format(rep('%08x', 8), state[1], state[2], state[3], state[4], state[5], state[6], state[7], state[8])
end

--- 32 hex digits from the arguments' canonical JSON array; nil counts as null.
function H.derive_id(...)
  local parts = setmetatable({}, H.ARRAY)
  for i = 1, select('#', ...) do
    local v = select(i, ...)
    if v == nil then v = H.null end
    parts[i] = v
  end
  local ok, text = pcall(H.json_encode, parts, true)
  if not ok then H.misuse('derive_id: ' .. text) end
  return sub(H.sha256(text), 1, 32)
end
