#include "fusebook/codegen/template_text.h"

#include <algorithm>
#include <set>
#include <utility>

#include "fusebook/support/error.h"

namespace fuse {
namespace {

constexpr char hole_mark = '@';

class Filler {
 public:
  explicit Filler(std::initializer_list<Hole> holes) : holes_(holes) {}

  std::string fill(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      const bool last = end == std::string_view::npos;
      const std::string_view line = text.substr(0, end);
      if (!add_lines(line)) {
        add_line(line);
        if (!last) out_ += '\n';
      }
      text = last ? "" : text.substr(end + 1);
    }
    for (const Hole& hole : holes_) {
      if (!used_.contains(hole.name)) fail("no hole for text", hole.name);
    }
    return std::move(out_);
  }

 private:
  // True for a line that is a hole and nothing else, now filled.
  bool add_lines(std::string_view line) {
    const std::size_t indent = line.find_first_not_of(' ');
    if (indent == std::string_view::npos) return false;
    const std::string_view word = line.substr(indent);
    if (word.front() != hole_mark ||
        word.find(hole_mark, 1) != word.size() - 1) {
      return false;
    }
    std::string_view text = text_of(word.substr(1, word.size() - 2));
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      const std::string_view each = text.substr(0, end);
      const bool stays = each.empty() || each.front() == '#';
      if (!stays) out_.append(indent, ' ');
      out_.append(each) += '\n';
      text = end == std::string_view::npos ? "" : text.substr(end + 1);
    }
    return true;
  }

  void add_line(std::string_view line) {
    for (;;) {
      const std::size_t begin = line.find(hole_mark);
      out_ += line.substr(0, begin);
      if (begin == std::string_view::npos) return;
      const std::size_t end = line.find(hole_mark, begin + 1);
      if (end == std::string_view::npos) {
        fail("an unclosed hole", line.substr(begin));
      }
      out_ += text_of(line.substr(begin + 1, end - begin - 1));
      line = line.substr(end + 1);
    }
  }

  std::string_view text_of(std::string_view name) {
    const auto found =
        std::find_if(holes_.begin(), holes_.end(),
                     [&](const Hole& hole) { return hole.name == name; });
    if (found == holes_.end()) fail("no text for hole", name);
    used_.insert(name);
    return found->text;
  }

  [[noreturn]] static void fail(const char* what, std::string_view name) {
    throw Error("a template of generated code has " + std::string(what) + " '" +
                std::string(name) + "'");
  }

  std::initializer_list<Hole> holes_;
  std::set<std::string_view> used_;
  std::string out_;
};

}  // namespace

std::string fill(std::string_view text, std::initializer_list<Hole> holes) {
  return Filler(holes).fill(text);
}

}  // namespace fuse
