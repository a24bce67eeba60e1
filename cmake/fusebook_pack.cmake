# fusebook_pack(TARGET [OUTPUT FILE] [CPU LEVEL...] [GPU ARCHITECTURE...]
#               [ARGUMENTS ARGUMENT...])
#
# Whenever TARGET was built, runs it with these arguments and compiles the kernels
# that it needs ahead, into FILE (by default TARGET.kernels beside it). See
# fusebook-pack --help for levels and architectures.
function(fusebook_pack target)
  cmake_parse_arguments(PARSE_ARGV 1 pack "" OUTPUT "CPU;GPU;ARGUMENTS")
  if(pack_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "fusebook_pack: unknown ${pack_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT TARGET fusebook::pack)
    message(FATAL_ERROR "fusebook_pack: this build of Fusebook has no fusebook-pack; "
                        "configure it with -DFUSEBOOK_PACK=ON")
  endif()
  if(NOT pack_OUTPUT)
    set(pack_OUTPUT $<TARGET_FILE_DIR:${target}>/${target}.kernels)
  endif()
  set(options --output ${pack_OUTPUT})
  foreach(kind IN ITEMS CPU GPU)
    if(pack_${kind})
      string(TOLOWER ${kind} option)
      list(JOIN pack_${kind} "," names)
      list(APPEND options --${option} ${names})
    endif()
  endforeach()
  add_custom_command(
    TARGET ${target} POST_BUILD
    COMMAND fusebook::pack ${options} -- $<TARGET_FILE:${target}> ${pack_ARGUMENTS}
    COMMENT "Packing the kernels of ${target}" VERBATIM)
endfunction()
