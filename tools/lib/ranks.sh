# shellcheck shell=sh
# Programs of several processes, the ranks of MPI.

# Sets `words` to those before a program that start it on so many ranks, each with
# one thread. Open MPI refuses root, and more ranks than cores, unless it is told
# otherwise, and gives the first rank a terminal where there is none. FUSEBOOK_MPI=mpich
# chooses MPICH where both are installed.
words_for_ranks() { # COUNT
  mpirun=mpirun
  [ "${FUSEBOOK_MPI:-}" != mpich ] || mpirun=mpirun.mpich
  words="$mpirun -n $1"
  case $("$mpirun" --version 2>/dev/null) in
    *"Open MPI"*)
      words="$words --oversubscribe"
      [ "$(id -u)" != 0 ] || words="$words --allow-run-as-root"
      ;;
  esac
  [ -t 1 ] || words="NO_COLOR=1 $words"
  words="env FUSEBOOK_THREADS=1 $words"
}
