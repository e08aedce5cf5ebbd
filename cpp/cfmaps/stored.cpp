#include "stored.hpp"

#include "nodes.hpp"
#include "sha256.hpp"

#include <algorithm>
#include <string>

namespace cfmaps
{
namespace
{
constexpr size_t digest_bytes = sizeof(Digest);
constexpr size_t digests_per_page = page_bytes / digest_bytes;

size_t pages_of(size_t n_bytes)
{
    return (n_bytes + page_bytes - 1) / page_bytes;
}

std::span<const uint8_t> page_of(std::span<const uint8_t> bytes, size_t page)
{
    return bytes.subspan(page * page_bytes, std::min(page_bytes, bytes.size() - page * page_bytes));
}

bool matches(std::span<const uint8_t> bytes, std::span<const uint8_t> digests, size_t index)
{
    const Digest digest = sha256(bytes);
    return std::equal(digest.begin(), digest.end(), digests.begin() + index * digest_bytes);
}
}  // namespace

std::vector<uint8_t> page_digests(std::span<const uint8_t> bytes)
{
    std::vector<uint8_t> digests(pages_of(bytes.size()) * digest_bytes);
    for (size_t page = 0; page < pages_of(bytes.size()); ++page)
    {
        const Digest digest = sha256(page_of(bytes, page));
        std::copy(digest.begin(), digest.end(), digests.begin() + page * digest_bytes);
    }
    return digests;
}

StoredNodes::StoredNodes(std::span<const uint64_t> words, std::span<const uint8_t> digests,
                         std::span<const uint8_t> roots)
    : words_(words), digests_(digests), roots_(roots)
{
    if (words.empty() || words.size() > UINT32_MAX || digests.size() != n_pages() * digest_bytes ||
        roots.size() != pages_of(digests.size()) * digest_bytes)
        throw CorruptMap("the file has too many or too few nodes or digests");
    checked_ = std::make_unique<std::atomic<bool>[]>(pages_of(digests.size()));
}

void StoredNodes::limit(uint32_t n_tests, uint32_t n_classes)
{
    n_tests_ = n_tests;
    n_classes_ = n_classes;
}

size_t StoredNodes::read(size_t page, std::array<uint64_t, page_nodes>& words) const
{
    check_digests_of(page);
    const auto stored = words_.subspan(page * page_nodes, std::min(page_nodes, words_.size() - page * page_nodes));
    std::copy(stored.begin(), stored.end(), words.begin());  // first, so that what was checked is what is kept
    const auto* bytes = reinterpret_cast<const uint8_t*>(words.data());
    if (!matches({bytes, stored.size_bytes()}, digests_, page))
        throw CorruptMap("the nodes of page " + std::to_string(page) + " are not those that were saved");
    for (size_t i = 0; i < stored.size(); ++i)
        expect_sound(words[i], page * page_nodes + i);
    return stored.size();
}

void StoredNodes::check_digests_of(size_t page) const
{
    const size_t group = page / digests_per_page;
    if (checked_[group].load(std::memory_order_relaxed))
        return;
    if (!matches(page_of(digests_, group), roots_, group))
        throw CorruptMap("the digests of the nodes are not those that were saved");
    checked_[group].store(true, std::memory_order_relaxed);
}

/// Children come after their parent, so no way through the nodes is endless.
void StoredNodes::expect_sound(uint64_t word, size_t id) const
{
    const Node node(word);
    const bool sound = node.is_inner()
                           ? node.test() < n_tests_ && node.child() > id && size_t{node.child()} + 1 < words_.size()
                       : node.is_leaf() ? node.label() < n_classes_
                                        : node.label() == 0;
    if (!sound)
        throw CorruptMap("node " + std::to_string(id) + " leads nowhere or has a class that the model has not");
}
}  // namespace cfmaps
