#undef NDEBUG

#include "cfmaps/box_tree.hpp"
#include "cfmaps/norms.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

namespace
{

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double powers[] = {1.0, 2.0, 3.0, 1.7, infinity};

struct Boxes
{
    std::size_t n_features;
    std::vector<double> lower, upper;
};

/// Ends on a small grid, so that boxes touch, overlap, repeat and shrink to points.
Boxes random_boxes(std::size_t n_boxes, std::size_t n_features, std::mt19937& random)
{
    std::uniform_int_distribution<int> end(-5, 5);
    Boxes boxes{n_features, {}, {}};
    for (std::size_t i = 0; i < n_boxes * n_features; ++i)
    {
        const auto [lower, upper] = std::minmax({end(random), end(random)});
        boxes.lower.push_back(lower == -5 ? -infinity : lower);
        boxes.upper.push_back(upper);
    }
    return boxes;
}

cfmaps::BoxTree tree_of(const Boxes& boxes, std::size_t leaf_size)
{
    return {boxes.n_features, boxes.lower, boxes.upper, leaf_size};
}

std::vector<double> random_points(std::size_t size, std::mt19937& random)
{
    std::uniform_real_distribution<double> coordinate(-8.0, 8.0);
    std::vector<double> points(size);
    std::generate(points.begin(), points.end(), [&] { return coordinate(random); });
    return points;
}

double distance(const Boxes& boxes, std::size_t box, const double* point, double p)
{
    double total = 0.0;
    for (std::size_t k = 0; k < boxes.n_features; ++k)
    {
        const std::size_t end = box * boxes.n_features + k;
        const double gap = std::max({boxes.lower[end] - point[k], point[k] - boxes.upper[end], 0.0});
        total = p == infinity ? std::max(total, gap) : total + std::pow(gap, p);
    }
    return p == infinity ? total : std::pow(total, 1.0 / p);
}

double nearest_distance(const Boxes& boxes, const double* point, double p)
{
    double nearest = infinity;
    for (std::size_t box = 0; box * boxes.n_features < boxes.lower.size(); ++box)
        nearest = std::min(nearest, distance(boxes, box, point, p));
    return nearest;
}

void every_answer_is_the_nearest_box()
{
    std::mt19937 random(1);
    for (std::size_t n_features : {1, 2, 5})
        for (std::size_t n_boxes : {1, 2, 9, 200})
            for (double p : powers)
            {
                const Boxes boxes = random_boxes(n_boxes, n_features, random);
                const auto points = random_points(20 * n_features, random);
                const std::vector<double> weights(n_features, 1.0);
                const auto found = tree_of(boxes, 1 + n_boxes % 7).nearest(points, weights, p);
                for (std::size_t row = 0; row < 20; ++row)
                {
                    const double expected = nearest_distance(boxes, &points[row * n_features], p);
                    assert(std::abs(found.distance[row] - expected) <= 1e-12 * expected);
                    assert(found.bound[row] >= found.distance[row]);
                }
            }
}

void an_empty_tree_answers_nothing()
{
    const auto found = tree_of({2, {}, {}}, 8).nearest(std::vector{1.0, 2.0}, std::vector{1.0, 1.0}, 2.0);
    assert(found.index[0] == -1 && found.distance[0] == infinity && std::isnan(found.point[0]));
}

template <class Norm>
void wider_gaps_stay_above_the_bound(const Norm& norm, double p)
{
    std::mt19937 random(2);
    std::uniform_real_distribution<double> exponent(-30.0, 30.0);
    for (int i = 0; i < 2000; ++i)
    {
        const double gap = std::exp2(exponent(random));
        const cfmaps::Pair terms = norm.term(cfmaps::Pair{gap, std::nextafter(gap, infinity)});
        assert(norm.bound(terms[0]) <= terms[1]);
        assert(std::abs(terms[0] / std::pow(gap, p) - 1.0) < 1e-13);
    }
}

void a_poll_that_throws_stops_the_search()
{
    const auto stop = [] { throw std::runtime_error("stop"); };
    try
    {
        tree_of({1, {0.0}, {1.0}}, 8).nearest(std::vector{2.0}, std::vector{1.0}, 1.0, stop);
    }
    catch (const std::runtime_error&)
    {
        return;
    }
    assert(false);
}

void threads_share_a_tree()
{
    std::mt19937 random(3);
    const cfmaps::BoxTree tree = tree_of(random_boxes(500, 3, random), 8);
    const auto points = random_points(300, random);
    const std::vector<double> weights(3, 1.0);
    const auto expected = tree.nearest(points, weights, 2.0);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] { assert(tree.nearest(points, weights, 2.0).index == expected.index); });
    for (std::thread& thread : threads)
        thread.join();
}

}  // namespace

int main()
{
    every_answer_is_the_nearest_box();
    an_empty_tree_answers_nothing();
    for (double p : {3.0, 7.0, 10.0})
        wider_gaps_stay_above_the_bound(cfmaps::WholePower(p), p);
    for (double p : {1.1, 1.5, 2.5, 9.9})
        wider_gaps_stay_above_the_bound(cfmaps::RealPower(p, 1), p);
    a_poll_that_throws_stops_the_search();
    threads_share_a_tree();
}
