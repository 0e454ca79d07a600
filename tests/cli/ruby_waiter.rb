# SPDX-License-Identifier: BSD-2-Clause
# Threads that wait in methods of their own; each says where by Ruby's own words, and then nothing moves.

class Cache
  def initialize
    @lock = Mutex.new
  end

  def hold
    @lock.synchronize { sleep }
  end

  def get
    @lock.synchronize { raise }
  end
end

def deep(left, queue)
  return queue.pop if left == 0
  deep(left - 1, queue) + 1
end

def größer(queue)
  [1].each do |_|
    queue.pop
  end
end

def rescued(queue)
  raise "once"
rescue
  queue.pop
ensure
  queue.clear
end

define_method(:made) { |queue| queue.pop }

# Its last line is many instructions from its first.
eval("def far_down(queue)\n" + "  a = 1\n" * 400 + "  queue.pop\nend", binding, "far_down.rb", 1)

def in_fiber(queue)
  Fiber.new { queue.pop }.resume
end

cache, queue = Cache.new, Queue.new
threads = [
  Thread.new { cache.hold },
  Thread.new { deep(200, queue) },
  Thread.new { größer(queue) },
  Thread.new { rescued(queue) },
  Thread.new { made(queue) },
  Thread.new { far_down(queue) },
  Thread.new { in_fiber(queue) },
  Thread.new { eval("queue.pop", binding, "an eval", 40) },
  Thread.new { sleep },
]
sleep 0.01 until threads.all?(&:stop?)
threads << Thread.new { cache.get }
sleep 0.01 until threads.all?(&:stop?)
in_c = %w[pop sleep synchronize each resume eval]
threads.each do |thread|
  frames = thread.backtrace_locations.reject { |at| in_c.include?(at.label) }
  puts frames.map { |at| "#{at.label}\t#{at.path}\t#{at.lineno}" }.join("\v")
end
puts "ready"
$stdout.flush
$stdin.read
