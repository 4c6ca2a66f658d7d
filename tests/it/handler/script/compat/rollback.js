// Takes an import back, from its last line to its first, 15 lines a step. A customer that was changed since stays.
var id = V8.Param.ImportId;
var fence = Number(V8.Param._BackgroundTaskFencingToken);
var task = V8.Param._BackgroundTaskId;
var mine = V8.FormEngine.UptFormDataByWhere('imports', {
  _Where: [
    ['Id', '=', id], ['AND', 'State', 'In', ['Done', 'TakingBack']],
    ['AND', '(', 'TaskId', '<>', task], ['OR', 'Fence', '<=', fence, ')']
  ],
  State: 'TakingBack', Fence: fence, TaskId: task
});
if (mine.Code !== 1) return mine;
if (mine.DataCount === 0) return { Code: 0, Msg: 'The import cannot be taken back now.' };

var before = (V8.Param._BackgroundTaskCheckpoint || {}).BeforeNo;
var where = [['ImportId', '=', id], ['AND', 'State', '=', 'Taken']];
if (before !== undefined) where.push(['AND', 'No', '<', before]);
var lines = V8.FormEngine.GetTableData('import_lines', {
  _Where: where, _OrderBys: { No: 'desc' }, _PageSize: 15, _SelectFields: ['Id', 'No', 'CustomerId', 'Json']
}).Data;
var kept = 0;
lines.forEach(function (line) {
  var customer = V8.FormEngine.GetFormData('customers', { Id: line.CustomerId });
  var untouched = customer.Code === 1 && customer.Data.Name === JSON.parse(line.Json).Name;
  if (untouched) V8.FormEngine.DelFormData('customers', { Id: line.CustomerId });
  else kept += 1;
  V8.FormEngine.UptFormData('import_lines', { Id: line.Id, State: untouched ? 'TakenBack' : 'Kept' });
  before = line.No;
});
if (kept > 0) V8.Method.UpdateBackgroundTask({ Log: kept + ' customers were changed since and stay' });

var of = function (state) {
  return V8.FormEngine.GetTableDataCount('import_lines', { _Where: [['ImportId', '=', id], ['AND', 'State', '=', state]] }).DataCount;
};
var left = of('Taken'), done = of('TakenBack') + of('Kept');
if (left > 0) {
  return { Code: 1, BackgroundTask: { HasMore: true, Checkpoint: { BeforeNo: before }, Current: done, Total: done + left } };
}
var end = V8.FormEngine.UptFormDataByWhere('imports', {
  _Where: [['Id', '=', id], ['AND', 'Fence', '=', fence]], State: 'TakenBack'
});
if (end.DataCount !== 1) return { Code: 0, Msg: 'A newer runner has taken over.' };
return { Code: 1, Data: { TakenBack: of('TakenBack'), Kept: of('Kept') } };
