#include "nodes.hpp"

#include <new>

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
            ::operator delete(words + first_of(block), alignment(size_of(block) * sizeof(Word)));
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
