#pragma once
// The map's memory: 8 bytes a node, in blocks that never move, so that readers need no lock while it grows.

#include "stored.hpp"

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>

namespace cfmaps
{
using std::size_t;

/// A node in one word: an inner node has a test and two children side by side; a leaf has a class or is undecided.
/// `classes` has a bit for each class (modulo 8) that may occur below.
class Node
{
public:
    static Node inner(uint32_t test, uint32_t child, uint8_t classes) { return {child, test, classes}; }
    static Node leaf(uint32_t label) { return {label, decided_test, class_bit(label)}; }
    static Node open(uint8_t classes) { return {0, open_test, classes}; }
    explicit Node(uint64_t word) : word_(word) {}

    static uint8_t class_bit(uint32_t label) { return static_cast<uint8_t>(1u << (label % 8)); }
    static constexpr uint32_t most_tests = 0xFFFFFE;

    uint64_t word() const { return word_; }
    uint32_t child() const { return static_cast<uint32_t>(word_ >> 32); }
    uint32_t label() const { return child(); }
    uint32_t test() const { return static_cast<uint32_t>(word_ >> 8) & 0xFFFFFF; }
    uint8_t classes() const { return static_cast<uint8_t>(word_); }
    bool is_inner() const { return test() < most_tests; }
    bool is_leaf() const { return test() == decided_test; }
    bool is_open() const { return test() == open_test; }

private:
    static constexpr uint32_t open_test = most_tests, decided_test = most_tests + 1;
    Node(uint32_t child, uint32_t test, uint8_t classes) : word_(uint64_t{child} << 32 | uint64_t{test} << 8 | classes)
    {
    }
    uint64_t word_;
};

/// Blocks of nodes, two of each length, so that at most a third is room to grow. One thread at a time writes a node;
/// any may read it.
class Nodes
{
public:
    static constexpr uint32_t run = 64;                // nodes a thread takes at once
    static constexpr size_t most_bytes_per_node = 12;  // 8, and at most half as much again for room to grow

    Nodes() = default;
    ~Nodes();
    Nodes(const Nodes&) = delete;
    Nodes& operator=(const Nodes&) = delete;

    /// Takes the place of nodes that lie in a file, before anything else was taken; a page is read when it is needed.
    void restore(std::unique_ptr<const StoredNodes> stored);

    Node read(uint32_t id) const
    {
        const uint64_t word = at(id).load(std::memory_order_acquire);
        return Node(word != not_read ? word : read_page_of(id));
    }
    /// Fetches a node that will be read soon; any number will do.
    void prefetch(uint32_t id) const
    {
        if (const Word* words = blocks_[block_of(id) % blocks_.size()].load(std::memory_order_relaxed))
            __builtin_prefetch(words + id);
    }
    void write(uint32_t id, Node node) { at(id).store(node.word(), std::memory_order_release); }

    /// The first of `run` new nodes.
    uint32_t take_run();
    size_t n_taken() const { return n_taken_.load(std::memory_order_relaxed); }
    size_t n_bytes() const { return n_bytes_.load(std::memory_order_relaxed); }

private:
    using Word = std::atomic<uint64_t>;
    static_assert(sizeof(Word) == 8 && Word::is_always_lock_free);
    static constexpr uint64_t not_read = 0;  // no node: it would be its own child's child

    uint64_t read_page_of(uint32_t id) const;

    // Counted in runs from 2 on, the two leading bits of a number name its block.
    static int block_of(uint32_t id)
    {
        const uint32_t place = id / run + 2;
        const int length = 30 - std::countl_zero(place);
        return 2 * length + static_cast<int>(place >> length & 1);
    }
    static size_t first_of(int block) { return (((size_t{2} + block % 2) << block / 2) - 2) * run; }
    static size_t size_of(int block) { return (size_t{1} << block / 2) * run; }
    Word& at(uint32_t id) const
    {
        const int block = block_of(id);
        return blocks_[block].load(std::memory_order_acquire)[id];
    }

    // Each pointer is moved back by the number of nodes in the blocks before it, so that a node's id is its index.
    std::array<std::atomic<Word*>, 52> blocks_{};
    std::atomic<size_t> n_taken_{0}, n_bytes_{0};
    std::mutex growing_;
    std::unique_ptr<const StoredNodes> stored_;
    mutable std::vector<bool> is_read_;  // per page of the file
    mutable std::mutex reading_;
    int n_zeroed_ = 0;  // blocks that were made for stored nodes
};

/// One thread's share of new nodes, handed out in pairs; the last pair can be given back.
class Pairs
{
public:
    explicit Pairs(Nodes& nodes) : nodes_(nodes) {}
    uint32_t take()
    {
        if (next_ == end_)
        {
            next_ = nodes_.take_run();
            end_ = next_ + Nodes::run;
        }
        next_ += 2;
        return next_ - 2;
    }
    bool is_last(uint32_t pair) const { return pair + 2 == next_; }
    void give_back() { next_ -= 2; }

private:
    Nodes& nodes_;
    uint32_t next_ = 0, end_ = 0;
};
}  // namespace cfmaps
