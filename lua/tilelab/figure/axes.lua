-- Axes of a figure: the width of a text, ranges that leave room for every mark, and tics.
--
-- gnuplot sizes text by counting characters; papers need to know what fits before they print, so
-- widths here are those of Liberation Sans (in points), and tics are written out one by one.
-- An axis is {lo=, hi=, log=base|nil, tics={{value=, label=, minor=}}, enhanced=boolean};
-- `enhanced` says that labels hold gnuplot markup ("10^{-3}").

local axes = {}

-- Advance widths in thousandths of an em, from the space to the tilde.
local WIDTHS = {
  278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
  556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
  1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
  667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
  333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
  556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
}

-- Largest magnitude that is drawn; beyond it sums and paddings leave the range of a double.
axes.LARGEST = 1e300

-- Points that a (valid UTF-8) text takes at `size` points.
function axes.width(text, size)
  local sum = 0
  for _, code in utf8.codes(text) do
    sum = sum + (WIDTHS[code - 31] or (code < 0x1100 and 600 or 1000))
  end
  return sum * size / 1000
end

function axes.finite(value)
  return type(value) == "number" and value == value and math.abs(value) <= axes.LARGEST
end

local SUFFIX = {[3] = "k", [6] = "M", [9] = "G", [12] = "T", [15] = "P"}

-- Fixed-point text with just enough decimals to tell the values apart.
local function fixed(values, step)
  local decimals = 0
  local scaled = step -- in units of the last decimal
  while decimals < 12 and (scaled < 0.999 or math.abs(scaled - math.floor(scaled + 0.5)) > 1e-6) do
    decimals, scaled = decimals + 1, scaled * 10
  end
  local labels = {}
  for i, value in ipairs(values) do
    labels[i] = string.format("%." .. decimals .. "f", value)
    if tonumber(labels[i]) == 0 then labels[i] = "0" end
  end
  return labels
end

-- Labels for evenly spaced values: plain, with one suffix (k, M, ...), or with one power of ten.
local function number_labels(values, step)
  local largest = 0
  for _, value in ipairs(values) do largest = math.max(largest, math.abs(value)) end
  local narrow = step < 1e-4 * largest and largest < 1e12 -- a suffix would hide what differs
  if narrow or largest < 99999 and (step >= 0.00099 or largest >= 0.1) then
    return fixed(values, step), false
  end
  local exponent = math.floor(math.log(largest, 10) + 1e-9)
  local power = largest >= 1e18 and exponent or exponent // 3 * 3
  if not SUFFIX[power] then power = exponent end
  local scaled = {}
  for i, value in ipairs(values) do scaled[i] = value / 10.0 ^ power end
  local labels = fixed(scaled, step / 10.0 ^ power)
  for i, label in ipairs(labels) do
    if label ~= "0" then
      labels[i] = label .. (SUFFIX[power] or string.format("×10^{%d}", power))
    end
  end
  return labels, SUFFIX[power] == nil
end

local function nice_step(span, intervals)
  local raw = span / intervals
  local power = 10.0 ^ math.floor(math.log(raw, 10))
  for _, factor in ipairs {1, 2, 5} do
    if factor * power >= raw * (1 - 1e-9) then return factor * power end
  end
  return 10 * power
end

-- Linear axis over [lo, hi] with at most `intervals` steps. Options: fixed_lo and fixed_hi keep an
-- end as given; pad = fraction of the span added at free ends; snap moves free ends out to a tic.
function axes.linear(lo, hi, intervals, options)
  if not (hi - lo > 1e-9 * math.max(math.abs(lo), math.abs(hi))) then
    local slack = math.max(math.abs(hi) * 0.05, lo == 0 and hi == 0 and 1 or 0)
    if not options.fixed_lo then lo = lo - slack end
    if not options.fixed_hi or options.fixed_lo then hi = hi + slack end
  end
  local pad = (options.pad or 0) * (hi - lo)
  if not options.fixed_lo then lo = lo - pad end
  if not options.fixed_hi then hi = hi + pad end
  local step = nice_step(hi - lo, math.max(1, intervals))
  if options.snap then
    if not options.fixed_lo then lo = math.floor(lo / step + 1e-9) * step end
    if not options.fixed_hi then hi = math.ceil(hi / step - 1e-9) * step end
  end
  local values = {}
  for i = math.ceil(lo / step - 1e-9), math.floor(hi / step + 1e-9) do
    values[#values + 1] = i * step
  end
  local labels, enhanced = number_labels(values, step)
  local tics = {}
  for i, value in ipairs(values) do tics[i] = {value = value, label = labels[i]} end
  return {lo = lo, hi = hi, tics = tics, enhanced = enhanced}
end

local function log_label(value, base, exponent, factor, plain)
  if plain then return string.format("%.10g", value) end
  if factor == 1 then return string.format("%d^{%d}", base, exponent) end
  return string.format("%d×10^{%d}", factor, exponent)
end

-- Logarithmic axis, base 2 or 10, over positive [lo, hi]; options as above (pad widens by a share
-- of the logarithm's span).
function axes.log(lo, hi, base, intervals, options)
  local span = math.max(math.log(hi / lo, base), 1e-9)
  local pad = span < 1e-6 and 0.3 or span * (options.pad or 0)
  if not options.fixed_lo then lo = lo / base ^ pad end
  if not options.fixed_hi then hi = hi * base ^ pad end
  local first = math.ceil(math.log(lo, base) - 1e-9)
  local last = math.floor(math.log(hi, base) + 1e-9)
  local majors = {1}
  if base == 10 and last - first < 2 then
    majors, first = {1, 2, 5}, first - 1
  end
  local stride = math.max(1, math.ceil((last - first) / math.max(1, intervals)))
  local tics, plain, labelled = {}, lo >= 0.00099 and hi < 1e5, 0
  for exponent = first, last do
    for factor = 1, base - 1 do
      local value = factor * (base + 0.0) ^ exponent
      if value >= lo * (1 - 1e-9) and value <= hi * (1 + 1e-9) then
        local major = exponent % stride == 0 and
          (factor == majors[1] or factor == majors[2] or factor == majors[3])
        if major then labelled = labelled + 1 end
        if major or factor == 1 or (base == 10 and last - first <= 6) then
          tics[#tics + 1] = {
            value = value, minor = not major,
            label = major and log_label(value, base, exponent, factor, plain) or "",
          }
        end
      end
    end
  end
  if labelled < 2 then -- less than a decade: even steps tell more
    local even = axes.linear(lo, hi, intervals, {fixed_lo = true, fixed_hi = true})
    even.log = base
    return even
  end
  return {lo = lo, hi = hi, log = base, tics = tics, enhanced = not plain}
end

-- True when every value reads well as it stands, without a suffix or a power of ten.
function axes.plain(values)
  for _, value in ipairs(values) do
    if value ~= 0 and (math.abs(value) < 0.00099 or math.abs(value) > 99999) then return false end
  end
  return true
end

-- True when every value is a power of two: such an axis is read in base 2.
function axes.powers_of_two(values)
  for _, value in ipairs(values) do
    local exponent = math.log(value, 2)
    if math.abs(exponent - math.floor(exponent + 0.5)) > 1e-9 then return false end
  end
  return #values > 1
end

-- Tics at exactly these numbers, or {value, label} pairs.
function axes.at(axis, list)
  local tics = {}
  for i, item in ipairs(list) do
    local value = type(item) == "table" and item[1] or item
    tics[i] = {value = value, label = type(item) == "table" and item[2] or nil}
  end
  for _, tic in ipairs(tics) do
    tic.label = tic.label or string.format("%.6g", tic.value)
  end
  axis.tics, axis.enhanced = tics, false
  return axis
end

-- Width of the widest tic label; markup counts as what it prints.
function axes.label_width(axis, size)
  local widest = 0
  for _, tic in ipairs(axis.tics) do
    local text = axis.enhanced and tic.label:gsub("[%^{}]", "") or tic.label
    widest = math.max(widest, axes.width(text, size))
  end
  return widest
end

-- Where a value falls, 0 at the low end and 1 at the high end.
function axes.position(axis, value)
  if axis.log then return math.log(value / axis.lo) / math.log(axis.hi / axis.lo) end
  return (value - axis.lo) / (axis.hi - axis.lo)
end

return axes
