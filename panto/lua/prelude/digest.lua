-- derive_id: a name made from what it is about. SHA-256 in Lua, so that it works anywhere, also outside a task.
local H = ...
local format, rep, unpack_bytes, pack_bytes = string.format, string.rep, string.unpack, string.pack
local select, sub, pcall, setmetatable = select, string.sub, pcall, setmetatable
local asks = H.asks

local LONG = 512 -- bytes from which Python's SHA-256 is worth a question: Lua needs milliseconds for a file

-- The first 32 bits of the fractional parts of the cube and square roots of the first primes.
local K = {
  0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
  0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
  0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
  0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
  0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
  0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
  0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
  0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
}
local START = {
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
}

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
  if #text > LONG then return asks.sha256(text) end
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
