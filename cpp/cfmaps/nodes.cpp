#include "nodes.hpp"

#include <cstdlib>
#include <new>
#include <string>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace cfmaps
{
namespace
{
constexpr size_t page = size_t{2} << 20;

/// A small map must not claim a page for each of its blocks.
std::align_val_t alignment(size_t n_bytes)
{
    return std::align_val_t{n_bytes < page ? 64 : page};
}

/// Large pages spare the search most of its address lookups.
void prefer_large_pages([[maybe_unused]] void* memory, [[maybe_unused]] size_t n_bytes)
{
#if defined(__linux__)
    if (n_bytes >= page)
        madvise(memory, n_bytes, MADV_HUGEPAGE);
#endif
}
}  // namespace

Nodes::~Nodes()
{
    for (int block = 0; block < static_cast<int>(blocks_.size()); ++block)
        if (Word* words = blocks_[block].load())
        {
            void* memory = words + first_of(block);
            block < n_zeroed_ ? std::free(memory) : ::operator delete(memory, alignment(size_of(block) * sizeof(Word)));
        }
}

void Nodes::restore(std::unique_ptr<const StoredNodes> stored)
{
    stored_ = std::move(stored);
    is_read_.resize(stored_->n_pages());
    const size_t n_taken = (stored_->n_nodes() + run - 1) / run * run;
    if (n_taken + run > UINT32_MAX)
        throw std::bad_alloc();
    for (int block = 0; first_of(block) < n_taken; ++block)
    {
        // Zeroed on first touch by the system: what no query needs takes no memory.
        void* memory = std::calloc(size_of(block), sizeof(Word));
        if (!memory)
            throw std::bad_alloc();
        blocks_[block].store(static_cast<Word*>(memory) - first_of(block), std::memory_order_release);
        n_zeroed_ = block + 1;
        n_bytes_.fetch_add(size_of(block) * sizeof(Word), std::memory_order_relaxed);
    }
    n_taken_.store(n_taken, std::memory_order_release);
}

/// Several threads may want the page: the first reads it, and from then on its nodes may be grown.
uint64_t Nodes::read_page_of(uint32_t id) const
{
    const std::lock_guard lock(reading_);
    const size_t index = id / page_nodes;
    if (stored_ && index < is_read_.size() && !is_read_[index])
    {
        std::array<uint64_t, page_nodes> words;
        const size_t n_nodes = stored_->read(index, words);
        for (size_t i = 0; i < n_nodes; ++i)
            at(static_cast<uint32_t>(index * page_nodes + i)).store(words[i], std::memory_order_release);
        is_read_[index] = true;
    }
    const uint64_t word = at(id).load(std::memory_order_acquire);
    if (word == not_read)
        throw CorruptMap("node " + std::to_string(id) + " was never written");
    return word;
}

uint32_t Nodes::take_run()
{
    const std::lock_guard lock(growing_);
    const size_t first = n_taken_.load(std::memory_order_relaxed);
    const int block = block_of(static_cast<uint32_t>(first));
    if (first + run > UINT32_MAX || block >= static_cast<int>(blocks_.size()))
        throw std::bad_alloc();
    if (!blocks_[block].load(std::memory_order_relaxed))
    {
        const size_t n_bytes = size_of(block) * sizeof(Word);
        void* memory = ::operator new(n_bytes, alignment(n_bytes));
        prefer_large_pages(memory, n_bytes);
        blocks_[block].store(static_cast<Word*>(memory) - first_of(block), std::memory_order_release);
        n_bytes_.fetch_add(n_bytes, std::memory_order_relaxed);
    }
    n_taken_.store(first + run, std::memory_order_relaxed);
    return static_cast<uint32_t>(first);
}
}  // namespace cfmaps
