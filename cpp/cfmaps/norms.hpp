#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace cfmaps
{

/// Two numbers that one instruction works on; compilers do not find this layout by themselves.
using Pair [[gnu::vector_size(2 * sizeof(double))]] = double;

inline Pair wider(Pair left, Pair right)
{
    return left < right ? right : left;
}

/// How far z must move to enter [lower, upper], for two boxes; 0 when it is already inside.
inline Pair gap(double z, Pair lower, Pair upper)
{
    return wider(wider(lower - z, z - upper), Pair{0.0, 0.0});
}

// A norm joins the terms of the weighted gaps, feature by feature; the root of the total is the distance. Sums,
// products and maxima round monotonely, so wider gaps never give a smaller total, and the total of a node is a bound as
// it is.

struct Manhattan
{
    static constexpr bool needs_a_unit = false;
    Pair term(Pair weighted_gap) const { return weighted_gap; }
    Pair join(Pair total, Pair term) const { return total + term; }
    double bound(double total) const { return total; }
    double root(double total) const { return total; }
};

struct Chebyshev : Manhattan
{
    Pair join(Pair total, Pair term) const { return wider(total, term); }
};

struct Euclid : Manhattan
{
    static constexpr bool needs_a_unit = true;
    Pair term(Pair weighted_gap) const { return weighted_gap * weighted_gap; }
    double root(double total) const { return std::sqrt(total); }
};

/// base to the exponent, by repeated squaring: unlike std::pow, monotone.
inline double whole_power(double base, std::uint64_t exponent)
{
    double result = 1.0;
    for (; exponent > 0; exponent /= 2)
    {
        if (exponent % 2 == 1)
            result *= base;
        if (exponent > 1)
            base *= base;
    }
    return result;
}

struct WholePower : Manhattan
{
    static constexpr bool needs_a_unit = true;
    explicit WholePower(double exponent) : p(static_cast<std::uint64_t>(exponent)) {}
    Pair term(Pair weighted_gap) const
    {
        return Pair{whole_power(weighted_gap[0], p), whole_power(weighted_gap[1], p)};
    }
    double root(double total) const { return std::pow(total, 1.0 / static_cast<double>(p)); }
    std::uint64_t p;
};

/// The last digits of std::pow are not monotone: bounds are lowered by more than they and the sum can be wrong.
struct RealPower : Manhattan
{
    static constexpr bool needs_a_unit = true;
    RealPower(double exponent, std::size_t n_features)
        : p(exponent), certain(1.0 - static_cast<double>(n_features + 16) * std::numeric_limits<double>::epsilon())
    {
    }
    Pair term(Pair weighted_gap) const { return Pair{std::pow(weighted_gap[0], p), std::pow(weighted_gap[1], p)}; }
    double bound(double total) const { return total * certain; }
    double root(double total) const { return std::pow(total, 1.0 / p); }
    double p;
    double certain;
};

/// The same norm measured in another unit, for gaps whose powers overflow or vanish.
template <class Norm>
struct Scaled : Norm
{
    static constexpr bool needs_a_unit = false;
    Scaled(const Norm& norm, double length) : Norm(norm), unit(length) {}
    Pair term(Pair weighted_gap) const { return Norm::term(weighted_gap / unit); }
    double root(double total) const { return unit * Norm::root(total); }
    double unit;
};

/// Beyond this p, the norm of any vector that fits in memory rounds to its largest entry.
inline constexpr double largest_power = 9.0e18;

}  // namespace cfmaps
