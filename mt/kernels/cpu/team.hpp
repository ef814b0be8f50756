// Threads that help one thread with the loops of a single sentence.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "simd.hpp"

namespace mt {

// A loop is split dynamically: the caller and the helpers claim one index after another, so that the caller never waits
// for a helper that sleeps or that the system does not run. A helper without work spins for SPIN, because the next loop
// usually follows within microseconds, and then sleeps.
//
// Helpers are of use only on a machine with an idle core. On a busy one, they take the caller's core, and the caller
// waits for a helper that the system has stopped. If a call has lost more than LONG by this, the calls of the next
// REST times as long have no helpers, so that a busy machine costs about 1 / REST of the time.
class Team {
    using Clock = std::chrono::steady_clock;

  public:
    explicit Team(int helpers) : size_(helpers) {}
    Team(const Team&) = delete;
    ~Team() {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            stopped_ = true;
        }
        wake_.notify_all();
        for (std::thread& thread : threads_) thread.join();
    }

    // Call work(i) for each i < count, in this thread and the helpers, and wait for all calls. `work` must not
    // throw. Only one thread at a time may call this function.
    template <typename Work>
    void run(int count, const Work& work) {
        if (count > MOST) {
            for (int i = 0; i < count; i++) work(i);
            return;
        }
        call_ = [](const void* function, int i) { (*static_cast<const Work*>(function))(i); };
        work_ = &work;
        finished_.store(0, std::memory_order_relaxed);
        state_.store(++loops_ << 32 | uint64_t(count) << 16);
        if (sleeping_.load()) wake();
        const int left = count - take();
        if (finished_.load(std::memory_order_acquire) != left) wait(left);
    }

    // A call of the library, which begins and ends in the same thread. `team` is null if the call has no helpers.
    class Call {
      public:
        explicit Call(Team* helpers) : team(helpers && helpers->ready() ? helpers : nullptr) {
            if (team) begin_ = Clock::now(), worked_ = thread_time(), team->waited_ = {};
        }
        Call(const Call&) = delete;
        ~Call() {
            if (!team) return;
            const Clock::time_point end = Clock::now();
            const Clock::duration lost = end - begin_ - (thread_time() - worked_) + team->waited_;
            if (lost > LONG) team->rests_ = true, team->rested_ = end + lost * REST;
        }
        Team* const team;

      private:
        Clock::time_point begin_;
        std::chrono::nanoseconds worked_;
    };

  private:
    static constexpr int MOST = 1 << 15;  // indices of a loop that is split
    static constexpr std::chrono::microseconds SPIN{50}, LONG{100};
    static constexpr int REST = 100;
    static constexpr int PAUSES = 64;  // between two looks at the clock

    static void pause() {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        asm volatile("yield");
#endif
    }

    // `state_` has the number of the loop, its count and the next index, so that one addition claims an index of the loop
    // that is read. Failed claims add 1 too, once for each thread and loop.
    static bool open(uint64_t state) { return (state & 0xffff) < (state >> 16 & 0xffff); }

    // Claim indices and call the function until none is left. Returns the number of calls.
    int take() {
        for (int taken = 0;; taken++) {
            const uint64_t state = state_.fetch_add(1, std::memory_order_acq_rel);
            if (!open(state)) return taken;
            call_(work_, int(state & 0xffff));
        }
    }

    // Start the helpers, or wake them.
    void wake() {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (threads_.empty()) start();
        wake_.notify_all();
    }

    // Signals are blocked in the helpers: Python expects them in its main thread.
    void start() {
        sigset_t all, before;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        try {
            for (int i = 0; i < size_; i++) threads_.emplace_back([this] { help(); });
        } catch (const std::exception&) {  // the system allows no more threads; those that there are suffice
        }
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        sleeping_.fetch_sub(1);
    }

    void help() {
        for (;;) {
            Clock::time_point idle = Clock::now();
            for (int pauses = 1;; pauses++) {
                if (open(state_.load(std::memory_order_relaxed))) {
                    if (const int taken = take()) finished_.fetch_add(taken, std::memory_order_release);
                    pauses = 0, idle = Clock::now();
                }
                pause();
                if (pauses % PAUSES == 0 && Clock::now() - idle > SPIN) break;
            }
            std::unique_lock<std::mutex> lock(mutex_);
            sleeping_.fetch_add(1);
            wake_.wait(lock, [this] { return stopped_ || open(state_.load()); });
            sleeping_.fetch_sub(1);
            if (stopped_) return;
        }
    }

    void wait(int left) {
        const Clock::time_point begin = Clock::now();
        for (int pauses = 1; finished_.load(std::memory_order_acquire) != left; pauses++) {
            if (pauses % PAUSES == 0 && Clock::now() - begin > LONG) std::this_thread::yield();
            pause();
        }
        if (const Clock::duration time = Clock::now() - begin; time > LONG) waited_ += time;
    }

    // Whether there is no rest after a call that lost time.
    bool ready() { return !rests_ || !(rests_ = Clock::now() < rested_); }

    // Processor time of this thread.
    static std::chrono::nanoseconds thread_time() {
        timespec time;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
    }

    const int size_;
    alignas(64) std::atomic<uint64_t> state_{0};
    void (*call_)(const void*, int) = nullptr;
    const void* work_ = nullptr;
    alignas(64) std::atomic<int> finished_{0};
    alignas(64) std::atomic<int> sleeping_{1};  // helpers that sleep; 1 before they are started
    uint64_t loops_ = 0;
    bool rests_ = false, stopped_ = false;
    Clock::time_point rested_{};
    Clock::duration waited_{};  // in this call, for helpers that the system did not run
    std::mutex mutex_;
    std::condition_variable wake_;
    std::vector<std::thread> threads_;
};

}  // namespace mt
