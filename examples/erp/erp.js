/**
 * The ERP's own script: who gives the token, and what happens to its records when a task ends.
 *
 * The token is asked from the ERP's server, which knows its signed-in user. The record is marked by the ERP's own call,
 * with its user's rights; marking it twice does no harm, so each open tab may do it.
 */
document.querySelector('taskbell-bell').getToken = async () => {
  const answer = await fetch('/taskbell-token');
  if (!answer.ok) throw new Error(`the sign-in has ended (${answer.status})`);
  return (await answer.json()).token;
};

document.addEventListener('taskbell:submitted', ({ detail: task }) => show(task.record?.id, 'publishing'));
document.addEventListener('taskbell:ended', async ({ detail: task }) => {
  if (task.record?.type !== 'price-list') return;
  await fetch(`/price-lists/${encodeURIComponent(task.record.id)}/ended`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ task: task.id, state: task.state }),
  });
  show(task.record.id, task.state);
});

const WORDS = { draft: 'draft', publishing: 'publishing', succeeded: 'published', failed: 'not published', cancelled: 'draft' };

function show(id, state) {
  const cell = id && document.getElementById(id)?.querySelector('[data-status]');
  if (!cell) return;
  cell.textContent = WORDS[state] ?? state;
  cell.dataset.status = state;
}

for (const [id, state] of Object.entries(await (await fetch('/price-lists')).json())) show(id, state);
