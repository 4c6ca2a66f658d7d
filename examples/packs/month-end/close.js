// One account a chunk: the checkpoint says how many are closed, so a crash repeats one account at most.
export default async function (task, cx) {
  const accounts = task.params.accounts ?? 12;
  const number = (cx.checkpoint?.closed ?? 0) + 1;
  const { balance } = await cx.run("account/balance", { month: task.params.month, number });
  const total = (cx.checkpoint?.total ?? 0) + balance;
  const told = { current: number, total: accounts, unit: "accounts", message: `account ${number}` };
  if (number < accounts) return { hasMore: true, checkpoint: { closed: number, total }, ...told };
  return { hasMore: false, result: { month: task.params.month, total }, ...told };
}
