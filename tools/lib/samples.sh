# shellcheck shell=sh
# Programs whose output is compared with the samples, or becomes one.
: "${root:?}" "${build:?}" "${python?}" "${chosen?}" # set by ./fusebook

# For the recipes in `chosen`.
with_samples() { # COMMAND OPTION...
  need_to_build python
  get_missing
  find_python
  check_exercises
  programs=$chosen
  for recipe in $chosen; do
    for exercise in $(exercises_of "$recipe"); do
      programs="$programs $recipe.$exercise"
    done
  done
  # shellcheck disable=SC2086 # names of programs are single words
  build $programs
  end_turn
  worst=0
  for recipe in $chosen; do
    docs_tool "$recipe" "$build/recipes/$recipe" "$@" || worst=1
    for exercise in $(exercises_of "$recipe"); do
      docs_tool "$recipe" "$build/tests/$recipe.$exercise" "$@" \
        --exercise "$exercise" || worst=1
    done
  done
  return "$worst"
}

# What compilers make of the kernels of the recipes in `chosen`.
with_kernels() { # OPTION...
  need_to_build python
  need_environment cuda
  get_missing
  find_python
  # shellcheck disable=SC2086 # names of programs are single words
  build $chosen gpu_code_check
  end_turn
  worst=0
  for recipe in $chosen; do
    ! is_script "$recipe" || continue # its kernels are those of its optimizers
    FUSEBOOK_PYTHON=$python sh "$root/tests/launch.sh" nvrtc 13 \
      sh "$root/tests/launch.sh" python -B "$root/docs/fusebook_docs" \
      machine-code --recipe "$recipe" --program "$build/recipes/$recipe" \
      --checker "$build/tests/gpu_code_check" "$@" || worst=1
  done
  return "$worst"
}

# What the page of benchmarks draws.
capture_bench() {
  need_to_build python
  get_missing
  find_python
  build bench
  end_turn
  "$build/tests/bench" --device cpu --json "$build/measured.json" &&
    "$python" -B "$root/docs/fusebook_docs" measurements \
      --json "$build/measured.json" --command "./fusebook bench --device cpu"
}

# The cases that the book compares with PyTorch's.
capture_peers() {
  need_to_build python
  need_environment module
  get_missing
  find_python
  build bench
  end_turn
  for case in 1 2; do
    "$build/tests/bench" --device cpu --peer torch --case "$case" \
      --json "$build/peers-$case.json" || return 1
  done
  "$python" -B "$root/docs/fusebook_docs" measurements --name peers \
    --json "$build/peers-1.json" --also "$build/peers-2.json" \
    --command "./fusebook capture peers" &&
    capture_adapters
}

# The same beside PyTorch's, over its own tensors; and steps that move fewer bytes,
# beside other packages.
capture_adapters() {
  build all # what is installed
  end_turn
  sh "$root/tests/launch.sh" torch "$root/tests/consumers/adapters.py" \
    "$build" "$build/adapters.json" &&
    "$python" -B "$root/docs/fusebook_docs" measurements --name adapters \
      --json "$build/adapters.json" --command "./fusebook capture peers" &&
    sh "$root/tests/launch.sh" torch "$root/tests/consumers/fewer_bytes.py" \
      "$build" "$build/bytes.json" &&
    "$python" -B "$root/docs/fusebook_docs" measurements --name bytes \
      --json "$build/bytes.json" --command "./fusebook capture peers"
}

# What the page about many ranks draws.
capture_ranks() {
  need_to_build python mpi
  get_missing
  find_python
  build bench_ranks
  end_turn
  sh "$root/tests/launch.sh" ranks 4 "$build/tests/bench_ranks" \
    --json "$build/ranks.json" &&
    "$python" -B "$root/docs/fusebook_docs" measurements --name ranks \
      --json "$build/ranks.json" --command "./fusebook bench --ranks 4"
}

# Where trainings end by how weights and states are stored: the page of benchmarks
# has the table.
capture_storages() {
  need_to_build python
  get_missing
  find_python
  build convergence
  end_turn
  "$build/tests/convergence" --device cpu --json "$build/storages.json" &&
    "$python" -B "$root/docs/fusebook_docs" measurements --name storages \
      --json "$build/storages.json" --command "./fusebook capture storages"
}

# The examples of the API reference, all in one program.
run_examples() { # OPTION...
  need_to_build python
  get_missing
  find_python
  build examples
  end_turn
  "$python" -B "$root/docs/fusebook_docs" examples \
    --program "$build/tests/examples" "$@"
}

# The build stops at the first exercise that does not fit; this names all.
check_exercises() {
  worst=0
  for recipe in $chosen; do
    "$python" -B "$root/docs/fusebook_docs" rebase-patch --check \
      --recipe "$recipe" || worst=1
  done
  [ "$worst" -eq 0 ] || fail 1 "not every exercise applies to its recipe (see above)"
}

docs_tool() { # RECIPE PROGRAM COMMAND OPTION...
  recipe_name=$1 program=$2 tool_command=$3
  shift 3
  "$python" -B "$root/docs/fusebook_docs" "$tool_command" \
    --recipe "$recipe_name" --program "$program" "$@"
}
