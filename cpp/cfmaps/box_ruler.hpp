#pragma once
// Distances from a point to blocks of boxes, for every kind of IndexedBoxes.

#include "cfmaps/indexed_boxes.hpp"
#include "cfmaps/norms.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace cfmaps
{

struct Query
{
    const double* point;
    const double* weights;
    std::size_t n_features;
};

inline Pair load(const double* numbers)
{
    Pair pair;
    std::memcpy(&pair, numbers, sizeof pair);
    return pair;
}

// A ruler gives the total of each box of a block. Bounds of nodes and distances of boxes both come from it: as a node's
// box contains its boxes and every step is monotone, no bound exceeds a total below it, and the search is exact.

template <class Kind, class Norm>
class Ruler;

/// Measures boxes whose ends are numbers.
template <class Norm>
class Ruler<Numbers, Norm>
{
public:
    Ruler(const IndexedBoxes<Numbers>&, const Norm& norm, const Query& query) : norm_(norm), query_(query) {}

    template <std::size_t lanes>
    std::array<double, lanes> totals(const double* block) const
    {
        Pair total[lanes / 2] = {};
        for (std::size_t feature = 0; feature < query_.n_features; ++feature, block += 2 * lanes)
            for (std::size_t pair = 0; pair < lanes / 2; ++pair)
            {
                const double* lower = block + 2 * pair;
                const Pair distance = gap(query_.point[feature], load(lower), load(lower + lanes));
                total[pair] = norm_.join(total[pair], norm_.term(query_.weights[feature] * distance));
            }
        std::array<double, lanes> result;
        std::memcpy(result.data(), total, sizeof result);
        return result;
    }

private:
    const Norm norm_;
    const Query query_;
};

/// Measures boxes whose ends are codes, by the term of every end: a point is outside one end of an interval at most, so
/// that the terms of both ends add up to the term of the gap, exactly.
template <class Norm>
class Ruler<EndCodes, Norm>
{
public:
    Ruler(const IndexedBoxes<EndCodes>& tree, const Norm& norm, const Query& query)
        : norm_(norm), n_features_(query.n_features), first_(tree.first), terms_(tree.ends.size())
    {
        for (std::size_t feature = 0; feature < n_features_; ++feature)
            for (std::size_t place = first_[2 * feature]; place < first_[2 * feature + 2]; ++place)
            {
                const double z = query.point[feature], end = tree.ends[place];
                const double out = std::max(place < first_[2 * feature + 1] ? end - z : z - end, 0.0);
                terms_[place] = norm.term(query.weights[feature] * Pair{out, out})[0];
            }
    }

    template <std::size_t lanes>
    std::array<double, lanes> totals(const std::uint16_t* block) const
    {
        Pair total[lanes / 2] = {};
        for (std::size_t feature = 0; feature < n_features_; ++feature, block += 2 * lanes)
        {
            const double* lower = terms_.data() + first_[2 * feature];
            const double* upper = terms_.data() + first_[2 * feature + 1];
            for (std::size_t lane = 0; lane < lanes; lane += 2)
            {
                const Pair below{lower[block[lane]], lower[block[lane + 1]]};
                const Pair above{upper[block[lanes + lane]], upper[block[lanes + lane + 1]]};
                total[lane / 2] = norm_.join(total[lane / 2], below + above);
            }
        }
        std::array<double, lanes> result;
        std::memcpy(result.data(), total, sizeof result);
        return result;
    }

private:
    const Norm norm_;
    std::size_t n_features_;
    std::span<const std::uint32_t> first_;
    std::vector<double> terms_;
};

/// Measures boxes whose intervals are codes, by the term of every interval.
template <class Norm>
class Ruler<IntervalCodes, Norm>
{
public:
    Ruler(const IndexedBoxes<IntervalCodes>& tree, const Norm& norm, const Query& query)
        : norm_(norm), n_features_(query.n_features), first_(tree.first), terms_(tree.ends.size() / 2)
    {
        for (std::size_t feature = 0; feature < n_features_; ++feature)
            write_terms(tree, query, feature);
    }

    template <std::size_t lanes>
    std::array<double, lanes> totals(const std::uint8_t* block) const
    {
        Pair total[lanes / 2] = {};
        for (std::size_t feature = 0; feature < n_features_; ++feature, block += lanes)
        {
            const double* terms = terms_.data() + first_[2 * feature] / 2;
            for (std::size_t lane = 0; lane < lanes; lane += 2)
                total[lane / 2] = norm_.join(total[lane / 2], Pair{terms[block[lane]], terms[block[lane + 1]]});
        }
        std::array<double, lanes> result;
        std::memcpy(result.data(), total, sizeof result);
        return result;
    }

private:
    void write_terms(const IndexedBoxes<IntervalCodes>& tree, const Query& query, std::size_t feature)
    {
        const std::size_t first = first_[2 * feature], n_intervals = first_[2 * feature + 1] - first;
        const double* lower = tree.ends.data() + first;
        for (std::size_t place = 0; place < n_intervals; ++place)
        {
            const double low = lower[place], high = lower[n_intervals + place];
            const Pair distance = gap(query.point[feature], Pair{low, low}, Pair{high, high});
            terms_[first / 2 + place] = norm_.term(query.weights[feature] * distance)[0];
        }
    }

    const Norm norm_;
    std::size_t n_features_;
    std::span<const std::uint32_t> first_;
    std::vector<double> terms_;
};

}  // namespace cfmaps
