// The loops around generated code that reduces elements on a CPU;
// gpu_reductions.h has those of a GPU. Behind reductions.h; never included by
// the library itself, only its text is.
#ifndef FUSEBOOK_CPU_REDUCTIONS_H
#define FUSEBOOK_CPU_REDUCTIONS_H

namespace fuse::FUSE_DEVICE {

// Reduces chunks of tensors of one body. `Body` is generated: beside what every
// body has, `reductions`, how many there are, `slots`, how many addresses a line
// has, and `reduce`, which visits the reductions and what each takes of an
// element.
template <class Body>
class Reducer {
 public:
  FUSE_FN explicit Reducer(const Reducing& work)
      : work_(work), uniform_(Body::uniform(work.table.args)) {}

  FUSE_LOOP void run(const ReducedTensor& tensor, i64 number) {
    prepare(tensor);
    const i64 begin = number * reduction_chunk;
    const i64 rest = tensor.numel - begin;
    const i64 end = begin + (rest < reduction_chunk ? rest : reduction_chunk);
    const int used = used_lanes(end - begin);
    alignas(64) double lanes[Body::reductions * reduction_lanes];
    Body::reduce({}, [&](int k, auto how, double) {
      for (int lane = 0; lane < used; ++lane) {
        lanes[k * reduction_lanes + lane] = how.first();
      }
    });
    take_elements(tensor, begin, end, lanes);
    Body::reduce({}, [&](int k, auto how, double) {
      double* const own = lanes + k * reduction_lanes;
      *place(tensor, number, k) = join_lanes(how, own, used);
    });
  }

 private:
  // Neighbouring chunks are mostly of one tensor.
  FUSE_FN void prepare(const ReducedTensor& tensor) {
    if (&tensor == prepared_) return;
    const Launch& table = work_.table;
    const double* columns =
        table.columns + tensor.instance * table.column_count;
    entry_ = Body::per_tensor(
        uniform_, Body::inputs(table.pointers + tensor.pointers, columns));
    prepared_ = &tensor;
  }

  FUSE_FN double* place(const ReducedTensor& tensor, i64 number, int k) const {
    return work_.numbers + (tensor.chunks == 1
                                ? tensor.results + k * tensor.apart
                                : tensor.partials + k * tensor.chunks + number);
  }

  template <class At>
  FUSE_FN void take(const At& at, i64 i, double* lane) const {
    typename Body::Element x;
    Body::load(x, at, i);
    Body::compute(x, entry_);
    Body::reduce(x, [&](int k, auto how, double value) {
      double& to = lane[k * reduction_lanes];
      to = how.join(to, how.term(value));
    });
  }

  FUSE_FN void take_elements(const ReducedTensor& tensor, i64 begin, i64 end,
                             double* lanes) const {
    void* const* pointers = work_.table.pointers + tensor.pointers;
    if constexpr (requires { typename Body::Lines; }) {
      const i64* strides = work_.table.strides + tensor.pointers;
      const typename Body::Lines first(pointers, strides);
      if (tensor.line < tensor.numel || !first.dense()) {
        take_lines(tensor, begin, end, lanes);
        return;
      }
    }
    take_dense(typename Body::Pointers(pointers), begin, end, lanes);
  }

  // Farther ahead than other loops: a row is too much work for the next page's first
  // elements to be asked for in time. Not at all where they do not ask.
  static FUSE_FN void want_row(const typename Body::Pointers& at, i64 i) {
    constexpr i64 ahead = 16 * reduction_lanes;
    if (ahead < elements_ahead) return;
    for (i64 k = 0; k < reduction_lanes; k += elements_a_turn) {
      Body::want(at, i + ahead + k);
    }
  }

  // In the order of memory: compilers would take several rows at a time, and
  // hardware fetches one stream ahead three times faster than several.
  FUSE_FN void take_dense(const typename Body::Pointers at, i64 begin, i64 end,
                          double* lanes) const {
    i64 i = begin;
    for (; i + reduction_lanes <= end; i += reduction_lanes) {
      asm volatile("" ::: "memory");  // one row after the other
      want_row(at, i);
      FUSE_INDEPENDENT
      for (int lane = 0; lane < reduction_lanes; ++lane) {
        take(at, i + lane, lanes + lane);
      }
    }
    FUSE_INDEPENDENT
    for (int lane = 0; lane < int(end - i); ++lane) {
      take(at, i + lane, lanes + lane);
    }
  }

  // Element by element, along lines in row-major order.
  FUSE_FN void take_lines(const ReducedTensor& tensor, i64 begin, i64 end,
                          double* lanes) const {
    const Launch& table = work_.table;
    for (i64 i = begin; i < end;) {
      const i64 line = i / tensor.line;
      const i64 first = tensor.pointers + line * Body::slots;
      const typename Body::Lines at(table.pointers + first,
                                    table.strides + first);
      const i64 line_end = (line + 1) * tensor.line;
      const i64 stop = line_end < end ? line_end : end;
      for (; i < stop; ++i) {
        take(at, i - line * tensor.line, lanes + (i - begin) % reduction_lanes);
      }
    }
  }

  const Reducing& work_;
  typename Body::Uniform uniform_;
  typename Body::PerTensor entry_{};
  const ReducedTensor* prepared_ = nullptr;
};

}  // namespace fuse::FUSE_DEVICE

#endif  // FUSEBOOK_CPU_REDUCTIONS_H
