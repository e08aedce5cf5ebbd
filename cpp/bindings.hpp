#pragma once
// What the binding files share: array types, results without copies, and calls that can be interrupted.

#include "cfmaps/explain.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace bindings
{
using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T, std::size_t n_dimensions>
using Result = nb::ndarray<nb::numpy, T, nb::ndim<n_dimensions>, nb::c_contig>;

template <class Array>
std::span<const double> span(const Array& array)
{
    return {array.data(), array.size()};
}

/// Hands a vector over to numpy, which frees it.
template <class T, std::size_t n_dimensions>
Result<T, n_dimensions> hand_over(std::vector<T>&& values, const std::size_t (&shape)[n_dimensions])
{
    auto owner = std::make_unique<std::vector<T>>(std::move(values));
    T* data = owner->data();
    nb::capsule capsule(owner.get(), [](void* vector) noexcept { delete static_cast<std::vector<T>*>(vector); });
    owner.release();
    return {data, n_dimensions, shape, capsule};
}

using Integers = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using FlagMatrix = nb::ndarray<const bool, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class To, class Array>
std::vector<To> copy(const Array& array)
{
    return {array.data(), array.data() + array.size()};
}

/// A call that Ctrl-C or the caller's own function may end: asked with the interpreter held, from this thread alone.
struct Poll
{
    nb::object progress;
    bool failed = false;  // then Python holds the exception

    bool ask(double share, std::size_t n_nodes)
    {
        const nb::gil_scoped_acquire python;
        if (!failed && PyErr_CheckSignals() != 0)
            failed = true;
        if (!failed && !progress.is_none())
            try
            {
                progress(share, n_nodes);
            }
            catch (nb::python_error& error)
            {
                error.restore();
                failed = true;
            }
        return failed;
    }
    void raise_if_failed()
    {
        if (failed)
            throw nb::python_error();
    }
};

inline cfmaps::Norm make_norm(double power, const Vector& weights, const std::vector<Matrix>& category_costs)
{
    cfmaps::Norm norm{power, copy<double>(weights), {}};
    for (const Matrix& costs : category_costs)
        norm.category_costs.push_back(copy<double>(costs));
    return norm;
}

/// Answers row by row; each array is made when it is asked for, as most callers read few of them.
struct Replies
{
    std::size_t n_rows, n_columns, n_axes;
    std::vector<double> points, numbers;     // answers; distances, then lower bounds
    std::vector<std::int32_t> codes, cells;  // statuses, labels, sources; cells of the answers, -1 where none moved
    std::vector<std::int64_t> work;          // nodes visited, then boxes evaluated

    Replies(const Matrix& rows, std::size_t n_axes)
        : n_rows(rows.shape(0)), n_columns(rows.shape(1)), n_axes(n_axes), points(copy<double>(rows)),
          numbers(2 * n_rows), codes(3 * n_rows), cells(n_rows * n_axes, -1), work(2 * n_rows)
    {
    }

    void set(std::size_t row, const cfmaps::Answer& answer, const cfmaps::Lattice& lattice)
    {
        lattice.move(answer.cells, &points[row * n_columns]);
        std::copy(answer.cells.begin(), answer.cells.end(), &cells[row * n_axes]);
        numbers[row] = answer.distance;
        numbers[n_rows + row] = answer.lower_bound;
        codes[row] = static_cast<std::int32_t>(answer.status);
        codes[n_rows + row] = answer.label;
        codes[2 * n_rows + row] = answer.source;
        work[row] = static_cast<std::int64_t>(answer.visited);
        work[n_rows + row] = static_cast<std::int64_t>(answer.evaluated);
    }
};

void bind_advisor(nb::module_& m);
}  // namespace bindings
