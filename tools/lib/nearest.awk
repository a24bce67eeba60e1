# Of the words after the first, prints the one nearest to the first; nothing when
# even that one is far off.
function min(a, b) { return a < b ? a : b }
function distance(a, b,    i, j, row, old, left) {
  for (j = 0; j <= length(b); j++) row[j] = j
  for (i = 1; i <= length(a); i++) {
    old = row[0]; row[0] = i
    for (j = 1; j <= length(b); j++) {
      left = row[j]
      row[j] = min(min(row[j], row[j - 1]) + 1,
                   old + (substr(a, i, 1) != substr(b, j, 1)))
      old = left
    }
  }
  return row[length(b)]
}
BEGIN {
  best = 1 + length(ARGV[1]) / 3
  for (k = 2; k < ARGC; k++) {
    d = distance(ARGV[1], ARGV[k])
    if (d <= best) { best = d - 0.5; name = ARGV[k] }
  }
  if (name != "") print name
}
