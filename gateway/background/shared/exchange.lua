-- One exchange between a gateway process and what all of them share. Times are in seconds on Redis' own clock, so
-- that the clocks of gateways do not matter. Everything here happens at once, or not at all.
--
-- KEYS[1]  the tag that begins every name
-- ARGV[1]  MessagePack of
--   [me, number, lease, accounts, asks, deltas, load]
--   number    of this batch of this process; one that is sent twice is done once, and answered alike
--   accounts  [[name, rpm, request depth, tpm, token depth, parallel, day limit, day, month limit, month, running]]
--             rates per minute, 0: none; depths in units; parallel 0: none; limits -1: none
--   asks      [[tokens, account…]]   accounts by number, from 1
--   deltas    [[number, [[account, tokens, day, month]…], [[day, key, model, requests, prompt, answer, estimated]…]]]
--   load      what the process knows of endpoints, opaque; "" if it does not tell now
-- gives      MessagePack of [answers, loads of other processes]
--   answers   [[[rpm, left, reset, tpm, left, reset], refusal]]   rates -1: none
--   refusal   [] or [account, dimension, limit, wait]
local me, number, lease, accounts, asks, deltas, load = unpack(cmsgpack.unpack(ARGV[1]))
local base = KEYS[1]
local clock = redis.call('TIME')
local now = tonumber(clock[1]) + tonumber(clock[2]) / 1000000
local EPSILON = 0.000001
local HOUR, TWO_MONTHS = 3600, 62 * 86400

local numbers = base .. ':n:' .. me
local last, said = string.match(redis.call('GET', numbers) or '0 ', '^(%d+) (.*)$')
last = tonumber(last)
if number <= last then return said end

-- what is kept of each account, as of now

for _, a in ipairs(accounts) do
  a.key = base .. ':a:' .. a[1]
  a.rpm, a.request_depth, a.tpm, a.token_depth, a.parallel = a[2], a[3], a[4], a[5], a[6]
  a.day_limit, a.day, a.month_limit, a.month, a.mine = a[7], a[8], a[9], a[10], a[11]
  local kept = redis.call('HMGET', a.key, 'requests', 'tokens', 'at', 'day', 'day_used', 'month', 'month_used')
  local passed = math.max(0, now - (tonumber(kept[3]) or now))
  a.requests = a.rpm > 0 and math.max(0, (tonumber(kept[1]) or 0) - passed * a.rpm / 60) or 0
  a.tokens = a.tpm > 0 and math.max(0, (tonumber(kept[2]) or 0) - passed * a.tpm / 60) or 0
  a.day_used = tonumber(kept[4]) == a.day and tonumber(kept[5]) or 0
  a.month_used = tonumber(kept[6]) == a.month and tonumber(kept[7]) or 0
  a.others = 0
  if a.parallel > 0 then
    a.runs = base .. ':p:' .. a[1]
    local held = redis.call('HGETALL', a.runs)
    for i = 1, #held, 2 do
      if held[i] ~= me then
        local count, until_ = string.match(held[i + 1], '^(%d+) (%S+)$')
        if tonumber(until_) > now then
          a.others = a.others + tonumber(count)
        else
          redis.call('HDEL', a.runs, held[i])
        end
      end
    end
  end
end

-- what ended requests have used: each delta once, though it is sent again until it is confirmed

for _, delta in ipairs(deltas) do
  if delta[1] > last then
    for _, one in ipairs(delta[2]) do
      local a = accounts[one[1]]
      a.tokens = math.max(0, a.tokens + one[2])
      if one[3] == a.day then a.day_used = math.max(0, a.day_used + one[2]) end
      if one[4] == a.month then a.month_used = math.max(0, a.month_used + one[2]) end
    end
    for _, row in ipairs(delta[3]) do
      local book, at = base .. ':u:' .. row[1], row[2] .. '\31' .. row[3] .. '\31'
      for i, what in ipairs({'requests', 'prompt', 'answer', 'estimated'}) do
        if row[3 + i] ~= 0 then redis.call('HINCRBY', book, at .. what, row[3 + i]) end
      end
      redis.call('EXPIRE', book, TWO_MONTHS)
    end
  end
end

-- who may pass

local function worse(found, account, dimension, limit, wait)
  if found == nil or wait > found[4] then return {account, dimension, limit, wait} end
  return found
end

local function refusal(ask)
  local found
  for i = 2, #ask do
    local a, tokens = accounts[ask[i]], ask[1]
    if a.rpm > 0 and a.requests + 1 > a.request_depth + EPSILON then
      found = worse(found, ask[i], 1, a.rpm, (a.requests + 1 - a.request_depth) * 60 / a.rpm)
    end
    if a.tpm > 0 and a.tokens + tokens > a.token_depth + EPSILON then
      found = worse(found, ask[i], 2, a.tpm, (a.tokens + tokens - a.token_depth) * 60 / a.tpm)
    end
    if a.parallel > 0 and a.others + a.mine >= a.parallel then
      found = worse(found, ask[i], 3, a.parallel, 0)
    end
    if a.day_limit >= 0 and a.day_used >= a.day_limit then
      found = worse(found, ask[i], 4, a.day_limit, 1e9)
    end
    if a.month_limit >= 0 and a.month_used >= a.month_limit then
      found = worse(found, ask[i], 5, a.month_limit, 2e9)
    end
  end
  return found
end

local function charge(ask)
  for i = 2, #ask do
    local a = accounts[ask[i]]
    a.mine = a.mine + 1
    a.requests = a.requests + 1
    a.tokens = a.tokens + ask[1]
    a.day_used = a.day_used + ask[1]
    a.month_used = a.month_used + ask[1]
  end
end

local function standing(ask)  -- what is left, of each rate where it is least
  local found = {-1, 0, 0, -1, 0, 0}
  for i = 2, #ask do
    local a = accounts[ask[i]]
    local left = a.request_depth - a.requests
    if a.rpm > 0 and (found[1] < 0 or left < found[2]) then
      found[1], found[2], found[3] = a.rpm, left, a.requests * 60 / a.rpm
    end
    left = a.token_depth - a.tokens
    if a.tpm > 0 and (found[4] < 0 or left < found[5]) then
      found[4], found[5], found[6] = a.tpm, left, a.tokens * 60 / a.tpm
    end
  end
  return found
end

local answers = {}
for n, ask in ipairs(asks) do
  local refused = refusal(ask)
  if not refused then charge(ask) end
  answers[n] = {standing(ask), refused or {}}
end

-- what is kept from now on

local expires = string.format('%.6f', now + lease)
for _, a in ipairs(accounts) do
  redis.call('HSET', a.key, 'requests', string.format('%.9g', a.requests), 'tokens', string.format('%.9g', a.tokens),
    'at', string.format('%.6f', now), 'day', a.day, 'day_used', a.day_used, 'month', a.month, 'month_used', a.month_used)
  redis.call('EXPIRE', a.key, (a.day_limit >= 0 or a.month_limit >= 0) and TWO_MONTHS or HOUR)
  if a.parallel > 0 then
    if a.mine > 0 then
      redis.call('HSET', a.runs, me, a.mine .. ' ' .. expires)
      redis.call('EXPIRE', a.runs, HOUR)
    else
      redis.call('HDEL', a.runs, me)
    end
  end
end

local loads = {}
if load ~= '' then
  local known = base .. ':e'
  redis.call('HSET', known, me, expires .. ' ' .. load)
  redis.call('EXPIRE', known, HOUR)
  local all = redis.call('HGETALL', known)
  for i = 1, #all, 2 do
    local until_, told = string.match(all[i + 1], '^(%S+) (.*)$')
    if tonumber(until_) <= now then
      redis.call('HDEL', known, all[i])
    elseif all[i] ~= me then
      loads[#loads + 1] = told
    end
  end
end

said = cmsgpack.pack({answers, loads})
redis.call('SET', numbers, number .. ' ' .. said, 'EX', HOUR)
return said
