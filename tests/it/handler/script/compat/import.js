// Takes the pending lines of an import over into the customers, 20 lines a step. The cursor is the number of the last line;
// the fence on the import keeps an older runner from writing after a newer one has begun.
var refuse = function (why) { return { Code: 0, Msg: why }; };
var id = V8.Param.ImportId;
var fence = Number(V8.Param._BackgroundTaskFencingToken);
var task = V8.Param._BackgroundTaskId;
var found = V8.FormEngine.GetFormData('imports', { Id: id });
if (found.Code === 2) return refuse('There is no import ' + id + '.');
if (found.Code !== 1) return found;
var header = found.Data;
if (header.State === 'Done') return { Code: 1, Data: { ImportId: id }, Msg: 'It was imported before.' };

var mine = V8.FormEngine.UptFormDataByWhere('imports', {
  _Where: [['Id', '=', id], ['AND', '(', 'Fence', '=', null], ['OR', 'TaskId', '<>', task], ['OR', 'Fence', '<=', fence, ')']],
  State: 'Running', Fence: fence, TaskId: task, StartedAt: header.StartedAt || DateNow('yyyy-MM-dd HH:mm:ss')
});
if (mine.Code !== 1) return mine;
if (mine.DataCount === 0) return refuse('A newer runner has taken over.');

var cursor = (V8.Param._BackgroundTaskCheckpoint || {}).LastNo || 0;
var page = V8.FormEngine.GetTableData('import_lines', {
  _Where: [['ImportId', '=', id], ['AND', 'State', '=', 'Pending'], ['AND', 'No', '>', cursor]],
  _OrderBy: 'No', _OrderByType: 'ASC', _PageIndex: 1, _PageSize: 20
});
if (page.Code !== 1) return page;

for (var i = 0; i < page.Data.length; i++) {
  var line = page.Data[i];
  var customer = JSON.parse(line.Json);
  customer.Id = 'c-' + id + '-' + line.No;
  customer.ImportId = id;
  var added = V8.FormEngine.AddFormData('customers', customer);
  V8.FormEngine.UptFormData('import_lines', {
    Id: line.Id, State: added.Code === 1 ? 'Taken' : 'Refused', CustomerId: added.Code === 1 ? customer.Id : null,
    Why: added.Code === 1 ? '' : 'refused'
  });
  cursor = line.No;
  V8.Method.UpdateBackgroundTask({ Current: cursor, Msg: 'line ' + cursor });
}

var count = function (state) {
  return V8.FormEngine.GetTableDataCount('import_lines', { _Where: [['ImportId', '=', id], ['AND', 'State', '=', state]] }).Data;
};
var pending = count('Pending'), taken = count('Taken'), refused = count('Refused');
var told = V8.FormEngine.UptFormDataByWhere('imports', {
  _Where: [['Id', '=', id], ['AND', 'Fence', '=', fence]],
  State: pending > 0 ? 'Running' : 'Done', Taken: taken, Refused: refused
});
if (told.DataCount !== 1) return refuse('A newer runner has taken over.');
if (pending > 0) {
  return { Code: 1, Data: { BackgroundTask: {
    HasMore: true, Checkpoint: { LastNo: cursor }, Current: taken + refused, Total: taken + refused + pending,
    NextDelaySeconds: 0, Msg: taken + ' taken, ' + refused + ' refused'
  } } };
}
return { Code: 1, Data: { ImportId: id, Taken: taken, Refused: refused }, Msg: 'All lines are in.' };
