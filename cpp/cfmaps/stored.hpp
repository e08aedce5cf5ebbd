#pragma once
// Nodes that lie in a file. They are read a page at a time, and a page is believed only after its digest was checked:
// so a map of gigabytes opens at once, and no flipped bit is ever searched.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

namespace cfmaps
{
using std::size_t;

/// A file, or the memory it is mapped to, does not hold what a map holds.
class CorruptMap : public std::runtime_error
{
public:
    using std::runtime_error::runtime_error;
};

constexpr size_t page_bytes = 4096, page_nodes = page_bytes / sizeof(uint64_t);

/// The digests of all pages of some bytes, one after the other; the last page may be short.
std::vector<uint8_t> page_digests(std::span<const uint8_t> bytes);

class StoredNodes
{
public:
    /// `digests` are those of the pages of `words`, `roots` those of the pages of `digests`, which alone are trusted.
    /// All three are borrowed.
    StoredNodes(std::span<const uint64_t> words, std::span<const uint8_t> digests, std::span<const uint8_t> roots);

    /// What the nodes may speak of.
    void limit(uint32_t n_tests, uint32_t n_classes);

    size_t n_nodes() const { return words_.size(); }
    size_t n_pages() const { return (words_.size() + page_nodes - 1) / page_nodes; }

    /// Copies a page and gives the number of its nodes, each of which is sound.
    size_t read(size_t page, std::array<uint64_t, page_nodes>& words) const;

private:
    void check_digests_of(size_t page) const;
    void expect_sound(uint64_t word, size_t id) const;

    std::span<const uint64_t> words_;
    std::span<const uint8_t> digests_, roots_;
    std::unique_ptr<std::atomic<bool>[]> checked_;  // per page of digests
    uint32_t n_tests_ = 0, n_classes_ = 0;
};
}  // namespace cfmaps
