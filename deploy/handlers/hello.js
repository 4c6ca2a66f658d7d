// Ten greetings a chunk. Whatever is killed meanwhile, it goes on from the last checkpoint.
export default async function (task, cx) {
  const total = task.params.times ?? 100;
  const done = Math.min((cx.checkpoint?.done ?? 0) + 10, total);
  if (done < total) {
    return { hasMore: true, checkpoint: { done }, current: done, total, unit: "greetings", nextDelaySeconds: 0.5 };
  }
  return { hasMore: false, result: { greetings: total }, current: total, total, unit: "greetings" };
}
