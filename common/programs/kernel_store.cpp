#include "fusebook/programs/kernel_store.h"

#include <algorithm>
#include <optional>
#include <set>

#include "fusebook/ir/plan_reuse.h"

namespace fuse {
namespace {

// The parameter groups whose numbers a program reads.
std::set<int> groups_of(const Program& program) {
  std::set<int> groups;
  for (const ScalarLeaf& leaf : program.scalars()) {
    for_each_number(leaf, [&](double, const Origin& origin) {
      if (origin.group >= 0) groups.insert(origin.group);
    });
  }
  return groups;
}

bool are_others(const std::set<int>& a, const std::set<int>& b) {
  return !a.empty() && !b.empty() &&
         std::none_of(a.begin(), a.end(),
                      [&](int group) { return b.contains(group); });
}

}  // namespace

std::span<const Piece> Request::pieces() const {
  if (pieces_.empty()) pieces_ = cut_pieces(program);
  return pieces_;
}

CompiledProgram* KernelStore::find(const Request& request) {
  for (std::size_t i = programs_.size(); i-- > 0;) {
    CompiledProgram& known = *programs_[i];
    if (request.is_like(known) && known.plan.matches(request.program)) {
      return &known;
    }
  }
  return nullptr;
}

CompiledProgram* KernelStore::adapt(const Request& request,
                                    const Facts& facts) {
  for (std::size_t i = programs_.size(); i-- > 0;) {
    const CompiledProgram& known = *programs_[i];
    if (!known.made) continue;
    std::optional<Plan> plan =
        fit(known.plan, request.program, request.pieces());
    if (!plan) continue;
    auto adapted = std::make_unique<CompiledProgram>();
    adapted->hash = request.hash;
    adapted->program = request.program;
    adapted->facts = facts;
    adapted->plan = std::move(*plan);
    adapted->kernel = known.kernel;
    adapted->made = false;
    make_room();
    return &add(std::move(adapted));
  }
  return nullptr;
}

CompiledProgram& KernelStore::add(std::unique_ptr<CompiledProgram> compiled) {
  compiled->last_call = calls_;
  programs_.push_back(std::move(compiled));
  return *programs_.back();
}

bool KernelStore::has_moved(const Request& request) const {
  const auto moved = [&](const CompiledProgram& known, const Guard& guard) {
    const auto scalar = std::size_t(guard.scalar);
    const ScalarLeaf& now = request.program.scalars()[scalar];
    return !now.is(guard.value) &&
           same_parameter(known.program.scalars()[scalar].origin, now.origin);
  };
  return std::any_of(
      programs_.begin(), programs_.end(), [&](const auto& known) {
        const auto& guards = known->plan.guards;
        return request.is_like(*known) &&
               std::any_of(
                   guards.begin(), guards.end(),
                   [&](const Guard& guard) { return moved(*known, guard); });
      });
}

std::size_t KernelStore::made_for(const Request& request) const {
  return std::size_t(
      std::count_if(programs_.begin(), programs_.end(), [&](const auto& known) {
        return known->made && request.is_like(*known);
      }));
}

std::size_t KernelStore::made_in(int segment) const {
  return std::size_t(
      std::count_if(programs_.begin(), programs_.end(), [&](const auto& known) {
        return known->new_operations && known->segment == segment;
      }));
}

bool KernelStore::has_new_operations(const Request& request) const {
  const auto has_body = [&](const Piece& piece) {
    return std::any_of(programs_.begin(), programs_.end(),
                       [&](const auto& known) {
                         return known->made && has_body_for(known->plan, piece);
                       });
  };
  const auto pieces = request.pieces();
  return !std::all_of(pieces.begin(), pieces.end(), has_body);
}

std::vector<const CompiledProgram*> KernelStore::companions(
    const Request& request, int segment) const {
  const auto pieces = request.pieces();
  const auto groups = groups_of(request.program);
  const auto may_meet = [&](const CompiledProgram& known) {
    const bool shares_a_body = std::any_of(
        pieces.begin(), pieces.end(),
        [&](const Piece& piece) { return has_body_for(known.plan, piece); });
    return shares_a_body || (known.segment == segment &&
                             are_others(groups, groups_of(known.program)));
  };
  std::vector<const CompiledProgram*> found;
  for (std::size_t i = programs_.size(); i-- > 0;) {
    const CompiledProgram& known = *programs_[i];
    if (known.made && may_meet(known)) found.push_back(&known);
  }
  return found;
}

void KernelStore::use(CompiledProgram& compiled, int segment) {
  compiled.last_call = calls_;
  latest_ = &compiled;
  const auto at = std::size_t(segment);
  if (at >= last_in_.size()) last_in_.resize(at + 1, nullptr);
  last_in_[at] = &compiled;
}

const CompiledProgram* KernelStore::last_in(int segment) const {
  const auto at = std::size_t(segment);
  return at < last_in_.size() ? last_in_[at] : nullptr;
}

const CompiledProgram* KernelStore::newest() const {
  const auto found =
      std::find_if(programs_.rbegin(), programs_.rend(),
                   [](const auto& known) { return known->made; });
  return found == programs_.rend() ? nullptr : found->get();
}

void KernelStore::make_room() {
  std::size_t adapted = 0;
  auto oldest = programs_.end();
  for (auto each = programs_.begin(); each != programs_.end(); ++each) {
    const CompiledProgram& known = **each;
    if (known.made) continue;
    ++adapted;
    const bool in_use = known.last_call == calls_ || &known == latest_;
    if (known.captured || in_use) continue;
    if (oldest == programs_.end() || known.last_call < (*oldest)->last_call) {
      oldest = each;
    }
  }
  if (adapted < most_adapted || oldest == programs_.end()) return;
  std::replace(last_in_.begin(), last_in_.end(), oldest->get(),
               static_cast<CompiledProgram*>(nullptr));
  programs_.erase(oldest);
}

}  // namespace fuse
