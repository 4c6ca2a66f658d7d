// What a host page in TypeScript writes. Checked by tests/run with the compiler of tests/npm; never run.
import { connect, type EndedEvent, type Task } from '../../static/taskbell.js';

const bell = document.querySelector('taskbell-bell');
if (bell) {
  bell.getToken = async () => (await (await fetch('/taskbell-token')).json()).token as string;
  bell.getToken = () => null;
  // @ts-expect-error a token is never given as such
  bell.getToken = 'tb_…';
  const open: boolean = bell.open;
  void bell.show(String(open));
}

document.addEventListener('taskbell:submitted', ({ detail }) => console.log(detail.replayed ? detail.replay?.startedBy : detail.id));
document.addEventListener('taskbell:ended', (event: EndedEvent) => {
  const { state, record, finishedAt }: Task = event.detail;
  // @ts-expect-error there is no such state
  if (state === 'done') return;
  if (state === 'failed') console.log(event.detail.error?.message, record?.id, finishedAt);
});

const button = document.createElement('taskbell-button');
button.setAttribute('action', 'publish-prices');
button.addEventListener('taskbell:ended', ({ detail: { progress } }) => console.log(progress.percent ?? 0, progress.eta.state));

const { tasks, connection, user, mark } = await connect({ url: 'https://tasks.example.com', getToken: () => 'token' });
const stop: () => void = tasks.subscribe(({ ids }) => console.log(user, ids.size, tasks.counts?.running, tasks.list().map((task) => task.can)));
connection.subscribe('record:price-list:EU')();
await mark('read', [...tasks.list().map((task) => task.id)]);
stop();
// @ts-expect-error tasks are the server's to change
tasks.get('x')!.state = 'failed';
