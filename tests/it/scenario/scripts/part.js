// Takes one part of a work that is spread out, in steps of a tenth of a second.
export default async function (task, cx) {
  const id = `${task.params.run}/${task.params.part}`;
  if ((await cx.tables.parts.get(id)) === null) return { done: false, delayMS: 200, message: "not laid down yet" };
  const steps = cx.checkpoint ?? 0;
  await cx.sleep(100);
  if (steps < 3) return { done: false, cursor: steps + 1, progress: 25 * (steps + 1) };
  const taken = await cx.tables.parts.update({ where: { Id: id, State: "Open" }, set: { State: "Done" } });
  return { done: true, result: { taken } };
}
