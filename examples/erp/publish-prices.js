// Publishes a price list, 40 articles in each step. It only counts: in a real one each step would call the shop.

export default async function (task, cx) {
  const total = task.params.articles ?? 1200;
  const from = cx.checkpoint?.next ?? 0;
  const next = Math.min(from + 40, total);
  const progress = { current: next, total, unit: "articles", phase: "publish", message: `${next} articles are in the shops`, rows: { ok: next - from, skipped: 0, failed: 0 } };
  if (next === total) return { hasMore: false, result: { published: total }, ...progress };
  return { hasMore: true, checkpoint: { next }, nextDelaySeconds: 0.5, ...progress };
}
