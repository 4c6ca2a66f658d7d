// Spreads a work over parts, which tasks of their own take, and looks every three seconds how far they are.
var run = V8.Param.Run, parts = V8.Param.Parts;
var seen = V8.Param._BackgroundTaskCheckpoint || { Phase: 'Spread', Looks: 0 };
var more = function (seen, done) {
  return { Code: 1, Data: { BackgroundTask: {
    HasMore: true, Checkpoint: seen, Current: done, Total: parts, NextDelaySeconds: 3, Msg: done + ' of ' + parts + ' parts'
  } } };
};
if (seen.Phase === 'Spread') {
  for (var n = 1; n <= parts; n++) {
    var added = V8.FormEngine.AddFormData('parts', { Id: run + '/' + n, Run: run, State: 'Open' });
    if (added.Code !== 1) return added;
  }
  return more({ Phase: 'Watch', Looks: 0 }, 0);
}
var of = function (state) {
  return V8.FormEngine.GetTableDataCount('parts', { _Where: [['Run', '=', run], ['AND', 'State', '=', state]] }).Data;
};
var done = of('Done'), broken = of('Broken');
V8.Method.UpdateBackgroundTask({ Current: done, Total: parts, Msg: 'looked for the ' + (seen.Looks + 1) + '. time' });
if (done + broken < parts) return more({ Phase: 'Watch', Looks: seen.Looks + 1 }, done);
if (broken > 0) return { Code: 0, Msg: broken + ' of ' + parts + ' parts broke', Data: { Broken: broken } };
return { Code: 1, Data: { Parts: done } };
