#pragma once
// What a person may change, whatever the model, and the slots that leaves to one row: cells of the lattice, cut again
// where a condition begins or ends, each with its nearest admissible value.

#include "forest.hpp"

namespace cfmaps
{
/// Which numbers an ordered axis may hold.
enum class Values : uint8_t
{
    free,     // all numbers of the grid
    whole,    // whole numbers
    listed,   // an ascending list
    stepped,  // start + i * step, as numbers of the grid
};

/// What an axis may become and what it costs, for every row. A value as it is may always stay.
struct AxisRule
{
    Values values = Values::free;
    std::vector<double> list = {};
    double start = 0, step = 0;
    bool from_row = false;    // steps start at the row's own value
    double up = 1, down = 1;  // cost of a gap of 1
    double fixed = 0;         // added to the gap of every change
    bool has_table = false;   // gaps come with each row, one a slot
};

/// The value of an axis lies within (or, negated, outside) limits that come with each row.
struct Condition
{
    uint32_t axis;
    bool negated;
};

/// A linear relation: the coefficients times the values, and those of the categories that are on, sum to at most this.
struct Relation
{
    std::vector<double> axis;      // per axis; 0 for categorical ones
    std::vector<double> category;  // per cell of the lattice; 0 for ordered axes
    double most;
};

struct Rules
{
    std::vector<AxisRule> axes;
    std::vector<Condition> conditions;
    std::vector<std::vector<uint32_t>> clauses;  // of each, one condition at least holds
    std::vector<Relation> relations;
    size_t most_changes = static_cast<size_t>(-1);
    bool single = true;                // the grid is float32
    std::vector<double> margins = {};  // per axis: an answer stands wherever its number moves by this; or none

    // What follows from the rest.
    std::vector<std::vector<uint32_t>> conditions_of, clauses_of;  // per axis
    std::vector<uint8_t> is_related;                               // per axis: some relation has it
    void finish(const Lattice& lattice);

    double next(size_t axis, double value) const;
    double nearest(size_t axis, double value) const;
    double previous(size_t axis, double value) const;
    /// The last admissible number up to a value, or the first from it; infinite where there is none.
    double at_most(size_t axis, double value, double row) const;
    double at_least(size_t axis, double value, double row) const;
    bool is_discrete(size_t axis) const { return axes[axis].values != Values::free; }
};

/// The part of the rules that depends on the row.
struct RowRules
{
    std::span<const double> low, high;                      // per axis
    std::span<const double> condition_low, condition_high;  // per condition
    std::span<const uint8_t> allowed;                       // per cell of the lattice, read for categorical axes
    std::span<const double> gaps;                           // of all slots of axes with tables, in order
};

/// The slots of one axis in ascending order; of a categorical axis one for each cell.
struct Slots
{
    std::vector<double> low, high, value, cost;
    std::vector<std::vector<uint32_t>> cell;      // per forest
    std::vector<uint32_t> reach_low, reach_high;  // with margins: the map's cells that the value may move to
    uint32_t home = 0;                            // the cheapest
    int64_t kept = -1;                            // the one that keeps the row's value
    std::vector<uint64_t> allowed;                // categorical: a bit a slot

    size_t size() const { return value.size(); }
    void clear();
    /// The slot that holds a value, or the first after it.
    uint32_t of(double z) const;
    /// The first slot of a range whose cell comes after a rank.
    uint32_t after(size_t forest, uint32_t rank, uint32_t first, uint32_t last) const;
};

/// Makes the slots of one row after another, for forests over the same axes.
class Slotting
{
public:
    Slotting(std::vector<const Lattice*> lattices, const Rules& rules);

    void prepare(std::vector<Slots>& slots, const double* row, const RowRules& of_row);

private:
    void prepare_ordered(Slots& slots, size_t axis, double x, const RowRules& of_row);
    void prepare_categorical(Slots& slots, size_t axis, const double* row, const RowRules& of_row);
    void find_starts(size_t axis, double low, double high, const RowRules& of_row);
    void find_reaches(size_t axis, double low, double high);
    void add(Slots& slots, size_t axis, double x, double low, double high);
    void add_reach(Slots& slots, size_t axis, double value);

    const std::vector<const Lattice*> lattices_;
    const Rules& rules_;
    std::vector<double> starts_;
};
}  // namespace cfmaps
