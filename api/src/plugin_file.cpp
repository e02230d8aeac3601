#include "plugin_file.hpp"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <vector>

#include "text.hpp"

namespace weft::core {
namespace {

using Header = ElfW(Ehdr);
using Segment = ElfW(Phdr);
using Section = ElfW(Shdr);
using Symbol = ElfW(Sym);

constexpr std::string_view version_symbol = "weft_provider_interface_version";
constexpr std::uint64_t largest_table = 64U << 20U;  // of a damaged file that claims more, nothing is read
constexpr unsigned char own_class = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
constexpr unsigned char own_order = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;

// Reads that check every offset: the file may be anything.
class File {
 public:
  explicit File(const std::string& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)), error_(errno) {
    struct stat status {};
    if (descriptor_ >= 0 && ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode)) {
      size_ = static_cast<std::uint64_t>(status.st_size);
      is_regular_ = true;
    }
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  [[nodiscard]] bool is_open() const { return descriptor_ >= 0; }
  [[nodiscard]] bool is_regular() const { return is_regular_; }
  [[nodiscard]] int error() const { return error_; }
  [[nodiscard]] bool holds(std::uint64_t offset, std::uint64_t length) const {
    return offset <= size_ && length <= size_ - offset;
  }

  template <typename Type>
  [[nodiscard]] bool read(std::uint64_t offset, Type* out, std::uint64_t count = 1) const {
    static_assert(std::is_trivially_copyable_v<Type>);
    const std::uint64_t length = count * sizeof(Type);
    return holds(offset, length) &&
           ::pread(descriptor_, out, length, static_cast<off_t>(offset)) == static_cast<ssize_t>(length);
  }

  // A table of `bytes` bytes; false when it is not wholly in the file.
  template <typename Type>
  [[nodiscard]] bool read_table(std::uint64_t offset, std::uint64_t bytes, std::vector<Type>& out) const {
    if (bytes > largest_table || !holds(offset, bytes)) return false;
    out.resize(bytes / sizeof(Type));
    return out.empty() || read(offset, out.data(), out.size());
  }

 private:
  int descriptor_;
  int error_;
  std::uint64_t size_ = 0;
  bool is_regular_ = false;
};

struct Tables {
  std::vector<Segment> segments;
  std::vector<Section> sections;
};

bool is_name(const std::vector<char>& names, std::uint64_t offset) {
  if (offset >= names.size()) return false;
  const std::string_view rest(names.data() + offset, names.size() - offset);
  return rest.substr(0, rest.find('\0')) == version_symbol;
}

// Where the value of a symbol lies in the file.
std::optional<std::uint64_t> file_offset(const std::vector<Segment>& segments, const Symbol& symbol) {
  for (const Segment& segment : segments) {
    if (segment.p_type != PT_LOAD || symbol.st_value < segment.p_vaddr) continue;
    const std::uint64_t into = symbol.st_value - segment.p_vaddr;
    if (into < segment.p_filesz) return segment.p_offset + into;
  }
  return {};
}

constexpr std::string_view damaged = "the file is damaged or only partly there; install or build it again";

PluginFile find_version(const File& file, const Tables& tables) {
  bool has_symbol_table = false;
  for (const Section& section : tables.sections) {
    if (section.sh_type != SHT_DYNSYM || section.sh_link >= tables.sections.size()) continue;
    has_symbol_table = true;
    const Section& strings = tables.sections[section.sh_link];
    std::vector<Symbol> symbols;
    std::vector<char> names;
    if (!file.read_table(section.sh_offset, section.sh_size, symbols) ||
        !file.read_table(strings.sh_offset, strings.sh_size, names)) {
      return {std::string(damaged), {}};
    }
    for (const Symbol& symbol : symbols) {
      if (symbol.st_shndx == SHN_UNDEF || !is_name(names, symbol.st_name)) continue;
      const auto offset = file_offset(tables.segments, symbol);
      std::uint32_t version = 0;
      if (!offset || !file.read(*offset, &version)) return {std::string(damaged), {}};
      return {{}, version};
    }
  }
  if (!has_symbol_table) return {};  // stripped of its section headers: only loading can tell
  return {"it is no weft plug-in: it does not export " + std::string(version_symbol), {}};
}

}  // namespace

PluginFile inspect_plugin_file(const std::string& path) {
  const File file(path);
  if (!file.is_open()) return {"the file cannot be read: " + system_text(file.error()), {}};
  if (!file.is_regular()) return {"it is not a file", {}};
  Header header{};
  if (!file.read(0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return {"it is no weft plug-in: not a shared object", {}};
  }
  if (header.e_ident[EI_CLASS] != own_class || header.e_ident[EI_DATA] != own_order) {
    return {"it is a shared object for another kind of machine", {}};
  }
  if (header.e_type != ET_DYN) return {"it is no weft plug-in: not a shared object", {}};

  Tables tables;
  if (!file.read_table(header.e_phoff, std::uint64_t{header.e_phnum} * sizeof(Segment), tables.segments) ||
      !file.read_table(header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Section), tables.sections)) {
    return {std::string(damaged), {}};
  }
  for (const Segment& segment : tables.segments) {
    if (segment.p_type == PT_LOAD && !file.holds(segment.p_offset, segment.p_filesz)) {
      return {std::string(damaged), {}};
    }
  }
  return find_version(file, tables);
}

}  // namespace weft::core
