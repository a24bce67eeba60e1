# The table at the end of a run, from the results that recipes wrote with --json.

# A recipe need not measure everything.
function known(key) { return (f, key) in got }
function time(key,  us) {
  if (!known(key)) return "-"
  us = got[f, key] + 0
  if (us >= 1e6) return sprintf("%.2f s", us / 1e6)
  if (us >= 1e3) return sprintf("%.2f ms", us / 1e3)
  return sprintf("%.1f us", us)
}
BEGIN { rows = 0 }
FNR == 1 { files++ }
match($0, /^ *"[a-z_]+": /) {
  key = $1; gsub(/[":]/, "", key)
  value = substr($0, RLENGTH + 1)
  sub(/,? *$/, "", value); gsub(/"/, "", value)
  if (!((files, key) in got)) got[files, key] = value
}
function launches() {
  if (!known("compiled_launches")) return "-"
  return (known("eager_launches") ? got[f, "eager_launches"] " -> " : "") \
         got[f, "compiled_launches"]
}
function width(n, text) { if (length(text) > w[n]) w[n] = length(text) }
function cell(n, text) { cells[rows, n] = text; width(n, text) }
function row(recipe, device, eager, compiled, ratio, started, count) {
  cell(1, recipe); cell(2, device); cell(3, eager); cell(4, compiled)
  cell(5, ratio); cell(6, started); cell(7, count); rows++
}
END {
  row("recipe", "device", "eager", "compiled", "ratio",
      "launches per step", "compilations")
  for (f = 1; f <= files; f++)
    row(got[f, "recipe"], got[f, "device"], time("eager_us"),
        time("compiled_us"),
        known("speedup") ? sprintf("%.2fx", got[f, "speedup"]) : "-",
        launches(), known("compilations") ? got[f, "compilations"] : "-")
  for (r = 0; r < rows; r++) {
    line = ""
    for (n = 1; n <= 7; n++)
      line = line sprintf(n < 3 ? "%-" w[n] "s  " : "%" w[n] "s  ",
                          cells[r, n])
    sub(/ +$/, "", line); print line
  }
}
