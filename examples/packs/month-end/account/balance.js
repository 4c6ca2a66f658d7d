// Run by close.js as "account/balance". A real one would ask the accounting system by cx.fetch, or a table of the pack.
export default function (task) {
  const { month, number } = task.params;
  return { balance: number * 100 + Number(month.slice(5)) };
}
