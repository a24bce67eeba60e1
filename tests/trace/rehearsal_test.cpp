#include "fusebook/trace/rehearsal.h"

#include <doctest/doctest.h>

#include <vector>

#include "fusebook/foreach/foreach.h"
#include "fusebook/reports/counters.h"
#include "fusebook/support/error.h"
#include "support/testing.h"

using namespace fuse;
using testing::contains;
using testing::message_of;

namespace {

bool is_new(const ListImpl& /*list*/) { return true; }
bool is_known(const ListImpl& /*list*/) { return false; }

}  // namespace

TEST_CASE("a rehearsal stores and launches nothing") {
  const std::vector<Tensor> params = {full({3}, 1.0), full({5}, 2.0)};
  const TensorList list = params;
  const Counters before = process_counters();
  CHECK(rehearse([&] { foreach_add_(list, foreach_mul(list, 2.0)); }, is_new));
  CHECK((process_counters() - before).launches == 0);
  CHECK(params[0].to_vector() == std::vector<double>(3, 1));
  CHECK(params[1].to_vector() == std::vector<double>(5, 2));
}

TEST_CASE("it stops where a value must be known or memory is written") {
  const Tensor param = full({3}, 1.0);
  const Tensor other = full({3}, 5.0);
  const TensorList list = {param};
  bool went_on = false;
  CHECK_FALSE(rehearse(
      [&] {
        foreach_add_(list, 1.0);
        static_cast<void>(param.to_vector());
        went_on = true;
      },
      is_new));
  CHECK_FALSE(rehearse(
      [&] {
        Tensor(other).fill_(7);  // which nothing recorded depends on
        went_on = true;
      },
      is_new));
  CHECK_FALSE(went_on);
  CHECK(param.to_vector() == std::vector<double>(3, 1));
  CHECK(other.to_vector() == std::vector<double>(3, 5));
}

TEST_CASE("only new lists are checked for shared memory") {
  const Tensor all = zeros({6});
  const TensorList front = {all.narrow(0, 0, 4)};
  const TensorList back = {all.narrow(0, 2, 4)};
  const auto add = [&] { foreach_add_(front, back); };
  CHECK(
      contains(message_of<Error>([&] { rehearse(add, is_new); }), "overlaps"));
  CHECK(rehearse(add, is_known));
}

TEST_CASE("it throws what the operations would throw") {
  const TensorList two = {zeros({3}), zeros({2})};
  const TensorList one = {zeros({3})};
  const auto add = [&] { foreach_add_(two, one); };
  const std::string message = message_of<Error>(add);
  CHECK_FALSE(message.empty());
  CHECK(message_of<Error>([&] { rehearse(add, is_known); }) == message);
}
