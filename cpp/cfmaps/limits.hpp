#pragma once
// When to stop: shared by all threads of one piece of work.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <thread>

namespace cfmaps
{
using Clock = std::chrono::steady_clock;
constexpr Clock::time_point never = Clock::time_point::max();

inline Clock::time_point after(double seconds)
{
    if (!(seconds < 1e9))
        return never;
    return Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

/// What ended a piece of work before it was done.
enum class Stop : int
{
    none,
    asked,
    nodes,
    memory,
    time,
};

/// Budgets of time and nodes, and a flag anyone may raise. Work that meets a limit stops cleanly and says so.
class Limits
{
public:
    Clock::time_point deadline = never;
    std::size_t most_bytes = std::numeric_limits<std::size_t>::max();
    std::function<bool()> poll;  // asked now and then by the thread that made the limits: true means stop

    /// The first reason given stays.
    void stop(Stop reason = Stop::asked)
    {
        Stop none = Stop::none;
        stopped_.compare_exchange_strong(none, reason, std::memory_order_relaxed);
    }
    Stop reason() const { return stopped_.load(std::memory_order_relaxed); }
    bool is_stopped() const { return reason() != Stop::none; }

    void allow_splits(std::size_t most) { splits_left_ = most; }
    /// Some of the splits left, for one thread to make; none ends the work. Small shares when few are left, so that
    /// no thread keeps what another could use.
    std::size_t take_splits()
    {
        std::size_t left = splits_left_.load(std::memory_order_relaxed), share;
        do
            share = std::min(left, std::clamp(left / 16, std::size_t{1}, std::size_t{64}));
        while (!splits_left_.compare_exchange_weak(left, left - share, std::memory_order_relaxed));
        if (share == 0)
            stop(Stop::nodes);
        return share;
    }
    void give_back_splits(std::size_t n) { splits_left_.fetch_add(n, std::memory_order_relaxed); }

    /// Looks at the clock and, every 50 ms, asks `poll`; true when the work has to end.
    bool check(Clock::time_point own_deadline)
    {
        if (is_past(deadline))
            stop(Stop::time);
        if (poll && std::this_thread::get_id() == owner_ && is_past(next_poll_))
        {
            next_poll_ = Clock::now() + std::chrono::milliseconds(50);
            if (poll())
                stop();
        }
        return is_stopped() || is_past(own_deadline);
    }

private:
    static bool is_past(Clock::time_point time) { return time != never && Clock::now() >= time; }

    std::atomic<Stop> stopped_{Stop::none};
    std::atomic<std::size_t> splits_left_{std::size_t{1} << 62};
    std::thread::id owner_ = std::this_thread::get_id();
    Clock::time_point next_poll_ = Clock::now() + std::chrono::milliseconds(50);
};
}  // namespace cfmaps
