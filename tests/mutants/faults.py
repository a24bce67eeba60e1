"""Faults that the tests must notice: each is one small change of one file.

A fault is kept as text that occurs exactly once in its file, the text that
takes its place, and the suites that should go red, the quickest first.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Fault:
    name: str
    file: str
    old: str
    new: str
    suites: tuple[str, ...]


def fault(name, file, old, new, *suites):
    return Fault(name, file, old, new, suites)


OPERATIONS = (
    fault("sub swaps its operands", "kernels/ops.def",
          "OP(sub, 2, a - b,", "OP(sub, 2, b - a,", "ops_test"),
    fault("addcdiv divides the wrong way round", "kernels/ops.def",
          "a + d * (b / c)", "a + d * (c / b)", "ops_test"),
    fault("maximum loses a NaN", "kernels/ops.def",
          "(a != a || a > b) ? a : b", "(a > b) ? a : b", "ops_test"),
    fault("lerp changes its form beyond one half", "kernels/ops.def",
          "math::abs(c) < T(0.5)", "math::abs(c) <= T(0.5)", "ops_test"),
    fault("clamp ignores its upper bound", "kernels/device.h",
          "return (raised != raised || raised < high) ? raised : high;",
          "return raised != raised ? high : raised;", "ops_test"),
    fault("a power drops its lowest digits", "kernels/device.h",
          "return {ordinary ? sum : high, ordinary ? low - (sum - high) : 0.0};",
          "return {ordinary ? sum : high, 0.0};",
          "ops_test"),
)

KERNELS = (
    fault("the last element is skipped", "kernels/device.h",
          "for (i64 i = begin; i < end; ++i) {",
          "for (i64 i = begin; i + 1 < end; ++i) {",
          "cpu_jit_test", "compile_test"),
    fault("all tensors share the first one's step", "kernels/device.h",
          "if (ready_ && __builtin_memcmp(&inputs, &inputs_, sizeof(inputs)) "
          "== 0) {",
          "if (ready_) {", "cpu_jit_test", "random_program_test"),
    fault("a part of a tensor stores its step too", "kernels/device.h",
          "    if (whole) Body::finish(entry_, pointers);",
          "    (void)whole;\n"
          "    Body::finish(entry_, pointers);",
          "cpu_jit_test", "random_program_test"),
    fault("every tensor of a part starts where the first does",
          "kernels/device.h",
          "const i64 begin = r == part.row ? part.begin : 0;",
          "const i64 begin = part.begin < row.numel ? part.begin : 0;",
          "interpreter_test", "random_program_test"),
    fault("constants lose half their digits", "kernels/body_writer.cpp",
          "return constant_text(n.value, type);",
          "return constant_text(n.value, DType::float32);",
          "codegen_test", "random_program_test"),
    fault("a generated call reverses its operands", "kernels/body_writer.cpp",
          'text += (k == 0 ? "" : ", ") + operand(n.in[k], n);',
          'text += (k == 0 ? "" : ", ") + operand(n.in[n.arity - 1 - k], n);',
          "codegen_test"),
    fault("per-tensor values reach elements as floats", "kernels/body_writer.cpp",
          '<< (n.second == DType::float32 ? "float("',
          '<< (true ? "float("',
          "codegen_test", "random_program_test"),
    fault("a per-tensor result goes to the wrong list", "kernels/body_writer.cpp",
          '<< store.slot << "], t." << field({store.value',
          '<< 0 << "], t." << field({store.value',
          "codegen_test", "compile_test"),
)

PLANS = (
    fault("constants are not guarded", "kernels/plan.cpp",
          "plan_.guards.push_back({piece->scalars[local], first.value});",
          "static_cast<void>(piece);", "plan_test", "compile_test"),
    fault("guards take -0 for 0", "kernels/plan.cpp",
          "return same_bits(scalars[std::size_t(guard.scalar)].value, "
          "guard.value);",
          "return scalars[std::size_t(guard.scalar)].value == guard.value;",
          "plan_test", "compile_test"),
    fault("values of columns are computed once a launch", "kernels/plan.cpp",
          "node.rate = std::max(node.rate, rate);",
          "static_cast<void>(rate);", "plan_test"),
    fault("all groups get the first one's rate", "kernels/plan.cpp",
          "instances_[i].columns.push_back(pieces[i]->scalars[local]);",
          "instances_[i].columns.push_back(pieces[0]->scalars[local]);",
          "plan_test", "optimizers_test"),
    fault("groups of different rates share a baked one", "kernels/plan.cpp",
          "return may_bake_(context_, other.origin) &&\n"
          "             same_bits(other.value, first.value);",
          "return may_bake_(context_, other.origin) &&\n"
          "             (same_bits(other.value, first.value) || true);",
          "plan_test"),
    fault("two constants become one", "kernels/fold.cpp",
          "std::memcmp(&a.value, &b.value, sizeof(double)) == 0 &&",
          "", "plan_test"),
    fault("constants are folded with the first operand alone",
          "kernels/fold.cpp",
          "in[k] = body.nodes[std::size_t(node.in[k])].value;",
          "in[k] = body.nodes[std::size_t(node.in[0])].value;",
          "plan_test"),
    fault("a list may be stored over itself shifted", "kernels/hazards.cpp",
          "if (a.stored && b.stored) return false;",
          "if (a.stored && b.stored) return true;", "hazards_test"),
    fault("neighbours in memory are refused", "kernels/hazards.cpp",
          "furthest_stored->end > range.begin",
          "furthest_stored->end >= range.begin", "hazards_test"),
)

BINDING = (
    fault("a changed list goes unnoticed", "kernels/address_table.cpp",
          "return bound_.compare(program.lists());", "return Change::none;",
          "binding_test", "moving_table_test"),
    fault("a cut row is begun anew", "kernels/table_parts.cpp",
          "parts.push_back({begin.row, begin.element, end.row, "
          "end.element});",
          "parts.push_back({begin.row, 0, end.row, end.element});",
          "binding_test"),
    fault("the last row is left out", "kernels/table_parts.cpp",
          "add_part(rows, begin, {i64(rows.size()), 0}, to);",
          "add_part(rows, begin, {i64(rows.size()) - 1, 0}, to);",
          "binding_test"),
    fault("what moved is not compared with what is stored",
          "kernels/address_table.cpp",
          "apart = apart && !stored_.touches(begin, begin + bytes);", "",
          "moving_table_test"),
    fault("a stored tensor moves unchecked", "kernels/address_table.cpp",
          "if (use.stored) apart = apart && std::equal(from, from + list.count, "
          "to);\n", "", "moving_table_test"),
    fault("what is stored is known for ever", "kernels/address_table.cpp",
          "    coincident_ = check_overlaps(plan, program);\n"
          "    stored_known_ = false;\n",
          "    coincident_ = check_overlaps(plan, program);\n",
          "moving_table_test"),
    fault("only the first line of a tensor moves", "kernels/address_table.cpp",
          "r < tensor_rows_[end]; ++r)", "r < tensor_rows_[begin] + 1; ++r)",
          "moving_table_test"),
    fault("a table that is kept passes for one that moved",
          "kernels/binding.cpp",
          "  if (keeps) now_.forget_moves();  // the table it was is still "
          "there\n", "", "gpu_kernel_test"),
    fault("sets that take turns are never found", "kernels/binding.cpp",
          "  if (keeps) keep_current();\n", "", "moving_table_test"),
    fault("ranges that touch are one byte too short",
          "kernels/stored_memory.cpp",
          "begins_[last_] < end;", "begins_[last_] + 1 < end;",
          "stored_memory_test"),
    fault("lists of other sizes meet unchecked", "kernels/address_table.cpp",
          "if (at_a == a.numels + a.count) return;", "return;",
          "binding_test", "random_program_test"),
    fault("every group reads the first one's columns", "kernels/binding.cpp",
          "columns_[i * std::size_t(column_count_) + k] =", "columns_[k] =",
          "binding_test"),
)

INTERPRETER = (
    fault("a result overwrites what is still read",
          "kernels/tile_program.cpp",
          "!read_after(store.slot, id)) {", "true) {", "interpreter_test"),
    fault("a load does not outlive a store", "kernels/tile_program.cpp",
          "if (last_use_[std::size_t(id)] < count() &&",
          "if (last_use_[std::size_t(id)] <= count() &&",
          "interpreter_test"),
    fault("a buffer is widened in place", "kernels/tile_program.cpp",
          "const bool may_reuse = n.op != OpCode::cast;",
          "const bool may_reuse = true;", "interpreter_test"),
    fault("the last tile is left out", "kernels/tile_runner.cpp",
          "for (i64 i = begin; i < end; i += step) run_tile(",
          "for (i64 i = begin; i + step < end; i += step) run_tile(",
          "interpreter_test"),
    fault("a part of a tensor stores its step, interpreted",
          "kernels/tile_runner.cpp",
          "if (whole) store_entry();",
          "static_cast<void>(whole);\n  store_entry();",
          "interpreter_test"),
)

REDUCED = (
    fault("halves are rounded away from zero", "kernels/device.h",
          "const unsigned rounded = bits + 0x7fffU + (bits >> 16 & 1U);",
          "const unsigned rounded = bits + 0x8000U;", "float16_test"),
    fault("a double becomes a float on its way to 16 bits", "kernels/device.h",
          "return float_of(keep ? bits : odd);", "return nearest;",
          "float16_test", "promotion_test"),
    fault("denormals of float16 are lost", "kernels/device.h",
          "const unsigned finite = int(size) < 0x38800000 ? denormal : "
          "ordinary;",
          "const unsigned finite = int(size) < 0x38800000 ? 0U : ordinary;",
          "float16_test"),
    fault("compiled results keep the digits of a float",
          "kernels/body_writer.cpp",
          'return rounded(n.dtype, text + ")");', 'return text + ")";',
          "promotion_test", "reduced_ops_test"),
    fault("interpreted results keep the digits of a float",
          "kernels/tile_program.cpp",
          "if (n.op == OpCode::cast || !is_reduced(n.dtype)) return;",
          "if (n.arity > 0) return;", "promotion_test", "reduced_ops_test"),
    fault("a number is stored by way of a float", "kernels/program.cpp",
          ": is_reduced(to.dtype) ||\n", ":\n", "promotion_test"),
    fault("a cast is another one each time", "kernels/fold.cpp",
          "return a.op == b.op && a.rate == b.rate && a.dtype == b.dtype &&",
          "return a.op == b.op && a.op != OpCode::cast && a.rate == b.rate && "
          "a.dtype == b.dtype &&", "promotion_test"),
    fault("casts of one value are one", "kernels/fold.cpp",
          "a.rate == b.rate && a.dtype == b.dtype &&",
          "a.rate == b.rate &&\n         "
          "(a.dtype == b.dtype || a.op == OpCode::cast) &&",
          "random_function_test"),
    fault("the two 16-bit types meet in the first one", "kernels/dtype.h",
          "return wide ? DType::float64 : DType::float32;",
          "return wide ? DType::float64 : is_reduced(b) ? a : DType::float32;",
          "promotion_test"),
)

ADAM = (
    fault("eps is inside the correction", "common/optim/adam.h",
          "    foreach_div_(denominators, bias_corrections2_sqrt);\n"
          "    foreach_add_(denominators, o.eps);\n",
          "    foreach_add_(denominators, o.eps);\n"
          "    foreach_div_(denominators, bias_corrections2_sqrt);\n",
          "adam_test"),
    fault("the second moment is not corrected", "common/optim/adam.h",
          "    foreach_div_(denominators, bias_corrections2_sqrt);\n", "",
          "adam_test"),
    fault("the first moment is corrected by the second's beta",
          "common/optim/adam.h",
          "foreach_sub(1.0, foreach_pow(beta1, batch.steps))",
          "foreach_sub(1.0, foreach_pow(beta2, batch.steps))", "adam_test"),
    fault("the second moment decays as the first", "common/optim/adam.h",
          "foreach_mul_(exp_avg_sqs, beta2);",
          "foreach_mul_(exp_avg_sqs, beta1);", "adam_test"),
    fault("amsgrad forgets its maximum", "common/optim/adam.h",
          "foreach_sqrt(o.amsgrad ? batch.states[2] : exp_avg_sqs);",
          "foreach_sqrt(exp_avg_sqs);", "adam_test", "optim_test"),
    fault("the moments move after the step", "common/optim/adam.h",
          "foreach_lerp_(exp_avgs, grads, 1.0 - beta1);",
          "foreach_lerp_(exp_avgs, grads, beta1);", "adam_test"),
)

FUNCTIONS = (
    fault("a rate that moved is baked again", "common/function.cpp",
          "if (origin.name != nullptr) return !promoted_names_;",
          "if (origin.name != nullptr) return true;", "function_test"),
    fault("kernels are found by their hash alone", "common/function.cpp",
          "if (alike(known, hash, program) && known.plan.matches(program)) {",
          "if (alike(known, hash, program)) {",
          "function_test"),
    fault("a record keeps the newest kernel alone", "common/record.h",
          "{ kernels_.insert(hash); }", "{ kernels_ = {hash}; }",
          "record_kernel_test"),
    fault("an eager operation counts as a recipe's kernel",
          "common/function.cpp",
          """  if (!eager_) {
    keep_source(made->plan);
    record_kernel(made->plan);
  }
""", """  if (!eager_) keep_source(made->plan);
  record_kernel(made->plan);
""", "record_kernel_test"),
)

CACHE = (
    fault("a changed entry is not noticed", "kernels/kernel_cache.cpp",
          "      trailer.checksum) {\n", "      trailer.checksum && false) {\n",
          "kernel_cache_test"),
    fault("another user's entry is loaded", "kernels/kernel_cache.cpp",
          'if (status->st_uid != geteuid()) return "it belongs to another '
          'user";\n',
          "", "kernel_cache_test", "cache_damage_test"),
    fault("orphaned compilers keep their directory",
          "kernels/scratch_directory.cpp",
          "if (std::rename(path.c_str(), last.c_str()) != 0) last = path;\n"
          "  std::error_code failed;\n"
          "  for (int i = 0; i < attempts; ++i) {",
          "last = path;\n"
          "  std::error_code failed;\n"
          "  for (int i = 0; i < 1; ++i) {", "scratch_directory_test"),
)

THREADS = (
    fault("idle threads keep looking for work", "kernels/parallel.cpp",
          "spin_time = std::chrono::microseconds(80);",
          "spin_time = std::chrono::microseconds(400000);", "parallel_test"),
    fault("a part may run twice", "kernels/parallel.cpp",
          "region.run(region.context, region.parts - parts_of(offer));",
          "region.run(region.context, region.parts - parts_of(offer) - 1);",
          "parallel_test"),
)

GPU = (
    fault("a changed table stays unnoticed", "kernels/gpu_kernel.cpp",
          "held->version == version && (!idle",
          "held->version != 0 && (!idle", "gpu_kernel_test"),
    fault("a graph's table gets other addresses", "kernels/gpu_kernel.cpp",
          "make_newest(table.moved_from(), true)",
          "make_newest(table.moved_from(), false)", "gpu_graph_test"),
    fault("moved addresses go to the start of the table",
          "kernels/gpu_kernel.cpp",
          "to.block.address() + to.pointers + moved.begin * sizeof(void*),",
          "to.block.address() + to.pointers,", "gpu_kernel_test"),
    fault("a table that failed to upload passes for uploaded",
          "kernels/gpu_kernel.cpp",
          "  to.version = 0;\n  to.was_launched",
          "  to.version = table.version();\n  to.was_launched",
          "gpu_kernel_test"),
    fault("scalars that failed to upload pass for uploaded",
          "kernels/gpu_kernel.cpp",
          "  to.values.clear();\n", "  to.values = wanted_;\n",
          "gpu_kernel_test"),
    fault("a graph's table is written over", "kernels/gpu_kernel.cpp",
          "held.use_count() == 1;", "held.use_count() > 0;",
          "gpu_graph_test"),
    fault("a graph's columns are written over", "kernels/gpu_kernel.cpp",
          "to.scalars.use_count() > 1", "to.scalars.use_count() < 1",
          "gpu_graph_test"),
    fault("a staging buffer in flight is written over",
          "kernels/gpu_staging.cpp",
          "  buffer.in_flight = true;\n", "", "gpu_staging_test"),
    fault("the last chunk reaches beyond its tensor",
          "kernels/gpu_table.cpp",
          "std::min((k + 1) * gpu_chunk, row.numel)", "(k + 1) * gpu_chunk",
          "gpu_kernel_test"),
    fault("a tensor without elements gets no chunk", "kernels/gpu_table.cpp",
          "std::max<i64>(1, (row.numel + gpu_chunk - 1) / gpu_chunk)",
          "(row.numel + gpu_chunk - 1) / gpu_chunk", "gpu_kernel_test"),
    fault("tickets begin at what was there", "kernels/gpu_table.cpp",
          "std::memset(memory, 0, layout.bytes);",
          "std::memset(memory, 0, layout.tickets);", "gpu_kernel_test"),
    fault("an error of the driver passes", "kernels/gpu_context.h",
          "if (code != cuda::success) fail(code, call, doing);",
          "if (code > cuda::success + 999) fail(code, call, doing);",
          "gpu_failures_test"),
    fault("a lost context is used again", "kernels/gpu_context.cpp",
          "    is_lost_ = true;\n", "", "gpu_context_test"),
    fault("a slab in use is given back", "kernels/gpu_memory.cpp",
          "if (content.in_use > 0) {", "if (content.in_use > 1) {",
          "gpu_memory_test"),
    fault("a full device keeps its cache", "kernels/gpu_memory.cpp",
          "    empty_locked();\n    *count = 1;", "    *count = 1;",
          "gpu_memory_test"),
    fault("a kernel is unloaded while it waits to run",
          "kernels/gpu_module.cpp",
          "    context_.api().stream_synchronize(context_.stream());\n", "",
          "gpu_failures_test", "gpu_graph_test"),
    fault("the GPU's compiler contracts", "kernels/compile_cuda.cpp",
          '"--fmad=false"', '"--fmad=true"', "compile_cuda_test"),
    fault("code for one architecture is taken for another's",
          "kernels/nvrtc_compiler.cpp",
          '    key += " " + option;\n', '    key += " " + option.substr(0, 9);\n',
          "compile_cuda_test"),
)

GRAPHS = (
    fault("a graph lets go of its tensors", "common/cuda_graph.cpp",
          "  made_.lists_.assign(recorder_.lists().begin(), "
          "recorder_.lists().end());\n", "", "cuda_graph_test"),
    fault("other threads launch into a capture", "kernels/stream_gate.cpp",
          "    if (has(gate_, Kind::use) || has(gate_, Kind::capture)) return;"
          "\n", "    return;\n", "cuda_graph_test"),
    fault("a captured function launches on its own", "kernels/gpu_context.cpp",
          "  if (!StreamHold::has(gate_, StreamHold::Kind::record)) return;\n",
          "  return;\n", "cuda_graph_test"),
    fault("lists made anew in each call need a new table",
          "kernels/bound_lists.cpp",
          "  return there ? Change::none : Change::moved;\n",
          "  return Change::moved;\n", "binding_test",
          "cuda_graph_test"),
    fault("views with other strides keep their table",
          "kernels/bound_lists.cpp",
          "take(next, layout.strides, layout.rank);",
          "take(next, next.data(), layout.rank);",
          "strided_test"),
    fault("a replay is not counted", "common/cuda_graph.cpp",
          "  function_->count_replay(*launched_, bytes_);\n", "",
          "cuda_graph_test"),
    fault("a number in host memory is frozen in a graph",
          "common/function_capture.cpp",
          "  refuse_given_numbers(*known, program);\n", "",
          "cuda_graph_test"),
    fault("a scheduled number is frozen in a graph",
          "common/function_capture.cpp",
          "  refuse_scheduled_numbers(program);\n", "", "cuda_graph_test"),
    fault("numbers that never moved cannot be captured",
          "common/function_capture.cpp",
          "    if (is_plain(program, scalar) && may_bake(origin)) continue;\n",
          "", "cuda_graph_test"),
    fault("a graph repeats what was not recorded", "common/recorder.cpp",
          "  if (write) recorder->outside_write(tensor);\n", "",
          "cuda_graph_test"),
)

STRIDES = (
    fault("dimensions merge although one tensor forbids it",
          "kernels/lines.cpp",
          "if (wide[t] != narrow[t] * inner.size) return false;",
          "if (wide[0] != narrow[0] * inner.size) return false;",
          "lines_test", "strided_test"),
    fault("lines forget to go back to the start of a dimension",
          "kernels/lines.cpp", "    index_[d] = 0;\n", "", "lines_test"),
    fault("a line counts as a whole tensor", "kernels/device.h",
          "visit(row, begin, end, whole && !lines);",
          "visit(row, begin, end, whole || lines);", "lines_test",
          "strided_test"),
    fault("a tensor in lines is never finished", "kernels/address_table.cpp",
          "if (is_line(row)) split.push_back(i64(row));", "", "lines_test",
          "strided_test"),
    fault("a line that is split finishes its tensor again",
          "kernels/address_table.cpp",
          "std::erase_if(split, [&](i64 row) { return "
          "is_line(std::size_t(row)); });",
          "", "lines_test"),
    fault("one dense list is enough for the loop without strides",
          "kernels/body_writer.cpp",
          'condition.empty() ? "" : " &&', 'condition.empty() ? "" : " ||',
          "strided_test", "random_program_test"),
    fault("the interpreter gathers as if the row began at its first element",
          "kernels/tile_runner.cpp",
          "first * strides_[s] * i64(size);\n    copy_strided(staged_",
          "0 * first * strides_[s] * i64(size);\n    copy_strided(staged_",
          "strided_test", "random_program_test"),
    fault("the stride class of a list is not guarded", "kernels/program.cpp",
          "info.strided = list.layouts != nullptr;", "info.strided = false;",
          "strided_test"),
    fault("slices overlap wherever their ranges do", "kernels/regions.cpp",
          "if (--budget_ < 0) return true;", "return true;", "regions_test"),
    fault("slices with one stride are compared at equal indices only",
          "kernels/regions.cpp",
          "for (std::int64_t k = first; k <= last; ++k) {\n"
          "      const Rest moved",
          "for (std::int64_t k = 0; first <= k && k <= last && k < 1; ++k) {\n"
          "      const Rest moved", "regions_test"),
    fault("equal ranges are equal tensors", "kernels/regions.cpp",
          "if (plain_a && plain_b) return true;", "return true;",
          "regions_test", "strided_test"),
    fault("what a slice steps over is not checked for overlap",
          "kernels/hazards.cpp",
          "if (range.stored) check_against(read_, i);", "", "strided_test"),
    fault("an expanded tensor may be stored to", "kernels/hazards.cpp",
          "if (range.stored) refuse_itself(range);", "", "strided_test"),
    fault("states forget the order of their parameter",
          "common/optim/state_store.cpp", "tensor = empty_like(param);",
          "tensor = empty(param.shape(), param.dtype());", "strided_test"),
    fault("a view of a pending tensor is read too early",
          "common/recorder.cpp",
          "if (share_bytes(*each.impl(), tensor)) return true;",
          "if (each.raw_data() == tensor.data) return true;", "strided_test"),
)

TRAINING = (
    fault("the last elements of a chunk are left out", "kernels/sums.h",
          "team.each(int(end - first),", "team.each(int(end - first) - 1,",
          "sums_of_tensors_test"),
    fault("lanes are added in another order", "kernels/sums.h",
          "half > 0; half /= 2", "half > 0; half /= 4",
          "sums_of_tensors_test"),
    fault("a loss goes back before what was recorded", "common/loss.cpp",
          "    target_.address(false);\n", "", "sums_of_tensors_test"),
    fault("a fill of -0 is one of 0", "common/device_copies.cpp",
          "value == 0 && !std::signbit(value)", "value == 0",
          "device_copies_test"),
    fault("overlapping tensors of a device are copied at once",
          "common/device_copies.cpp",
          "if (share_bytes(*target.impl(), *source.impl()))", "if (false)",
          "device_copies_test"),
    fault("the larger dtype goes between devices", "common/device_copies.cpp",
          "size_of(target.dtype()) < size_of(source.dtype())",
          "size_of(target.dtype()) > size_of(source.dtype())",
          "device_copies_test"),
    fault("a copy on a device goes to where the one before went",
          "common/program_on_gpu.cpp",
          "  ready.table.bind(ready.plan, program, 1);",
          "  if (ready.table.rows().empty()) {\n"
          "    ready.table.bind(ready.plan, program, 1);\n  }",
          "device_copies_test"),
)

MEASURING = (
    fault("what a cache answered counts as cold", "tests/bench/counted_call.cpp",
          "spent.compiler_runs == expected.compiler_runs &&", "",
          "bench_counted_call_test"),
    fault("what the disk answered counts as memory's",
          "tests/bench/counted_call.cpp",
          " &&\n      spent.disk_hits == expected.disk_hits", "",
          "bench_counted_call_test"),
    fault("the limit leaves out the last array it writes",
          "common/bandwidth.cpp",
          "((k < Writes ? void(std::memcpy(",
          "((k + 1 < Writes ? void(std::memcpy(", "bandwidth_test"),
    fault("threads of the limit do each other's part of a tensor",
          "common/bandwidth.cpp",
          "std::max<std::int64_t>(begin - starts_[i], 0),", "0,",
          "bandwidth_test"),
    fault("the divisor of another process is taken", "tests/bench/summary.cpp",
          "ratios.push_back(found->us / found->divisor_us);",
          "ratios.push_back(found->us / figure.divisor_us);",
          "bench_summary_test"),
    fault("any amount of memory keeps the promise", "tests/bench/promises.cpp",
          "peak->bytes <= most;", "peak->bytes > 0;", "bench_summary_test"),
)

FAULTS = (OPERATIONS + KERNELS + PLANS + BINDING + INTERPRETER + REDUCED +
          ADAM + FUNCTIONS + CACHE + THREADS + STRIDES + GPU + GRAPHS +
          TRAINING + MEASURING)
