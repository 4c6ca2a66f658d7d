// Builds a site in eight phases, one a step, and cleans up after itself whichever way it ends. Each phase leaves a row; the
// artifacts of the unfinished site are rows that the last phase, or the clean-up after a failure, takes away. A step that
// fails is undone, so the clean-up is a step of its own and the failure is told by the one after it.
const PHASES = ["plan", "fetch", "unpack", "compile", "bundle", "check", "publish", "clean"];

export default async function (task, cx) {
  const { phases, artifacts } = cx.tables;
  const build = task.params.build;
  const at = cx.checkpoint ?? { phase: 0, made: 0 };
  const failed = at.failed ?? null;
  const phase = failed === null ? PHASES[at.phase] : "clean";
  let made = at.made;

  if (at.cleaned) {
    return { fail: { code: "build-failed", message: `The phase ${failed} failed; all is cleaned up.` } };
  }
  if (phase === "clean") {
    const removed = await artifacts.delete({ where: { build } });
    await phases.insert({ id: `${build}/clean`, build, name: "clean", no: 8, detail: `${removed} removed` });
    if (failed !== null) return { done: false, cursor: { ...at, cleaned: true } };
    return { done: true, progress: 100, message: "published", result: { phases: PHASES.length, removed } };
  }
  if (phase === task.params.breaks) {
    return { done: false, cursor: { ...at, failed: phase }, message: `${phase} failed, cleaning up` };
  }
  for (let n = 0; n <= at.phase; n++) {
    await artifacts.insert({ id: `${build}/${phase}/${n}`, build });
    made += 1;
  }
  await phases.insert({ id: `${build}/${phase}`, build, name: phase, no: at.phase + 1, detail: `${made} made` });
  return {
    done: false,
    cursor: { phase: at.phase + 1, made },
    progress: Math.floor((100 * (at.phase + 1)) / PHASES.length),
    message: `${phase} is through`,
    delayMS: 5,
  };
}
